import { describeOf } from "../describe.ts";

export const exchangeDescribe = describeOf("exchange");
