/** The public HTTP exchange as a client calls it: JSON in, JSON out, a refusal as an error with its code. */

import type { Json } from "../../../shared/canonical.ts";
import { AuthorityError, isErrorCode } from "../../../shared/errors.ts";

export async function post<T>(url: string, body: unknown): Promise<T> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Json;
  if (response.ok) return answer as T;
  const { code = "internal", error = "" } = answer as { code?: string; error?: string };
  throw new AuthorityError(isErrorCode(code) ? code : "internal", error);
}
