/** Which subjects a stream holds under a filter, from its leader: the rows' names without the rows. */
import type { NatsConnection } from "@nats-io/nats-core";
import { unavailable } from "../errors.ts";
import { askApi, describe } from "./api.ts";

interface SubjectsPage {
  readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
  readonly total?: number;
}

/** Complete as of one moment where a page holds them all, as of several otherwise. `timeoutMs` is for each page. */
export async function subjectsUnder(
  connection: NatsConnection,
  stream: string,
  filter: string,
  timeoutMs: () => number,
): Promise<string[]> {
  const found: string[] = [];
  for (;;) {
    const question = { subjects_filter: filter, offset: found.length };
    const page = await askApi<SubjectsPage>(connection, `STREAM.INFO.${stream}`, question, timeoutMs());
    if (page.error) throw unavailable(`info of ${stream}: ${describe(page.error)}`);
    const subjects = Object.keys(page.state?.subjects ?? {});
    found.push(...subjects);
    if (subjects.length === 0 || found.length >= (page.total ?? 0)) return found;
  }
}
