import { describeOf } from "../describe.ts";

export const custodianDescribe = describeOf("custodian");
