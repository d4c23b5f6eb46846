import { timingSafeEqual } from "node:crypto";

/** Whether two texts are equal, in constant time for texts of one length: lengths are no secret here. */
export function sameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
