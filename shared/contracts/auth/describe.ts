import { describeOf } from "../describe.ts";

/** Public and static: anyone with a `describe` row (operations §12). */
export const authDescribe = describeOf("auth");
