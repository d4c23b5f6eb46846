/** That a credential is good for what it says: what one connection publishes, another hears. */
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { expect } from "vitest";

/** Rejects where the broker does not let one of them, within a second. */
export async function hears(listener: NatsConnection, speaker: NatsConnection, subject: string): Promise<void> {
  const subscription = listener.subscribe(subject, { max: 1, timeout: 1_000 });
  await listener.flush();
  const text = `over ${subject}`;
  speaker.publish(subject, text);
  for await (const message of subscription) expect(message.string()).toBe(text);
}

/** A row of the space account as its writer writes it: acknowledged by the broker. */
export async function writes(connection: NatsConnection, subject: string, value: object): Promise<void> {
  const absent = headers();
  absent.set("Nats-Expected-Last-Subject-Sequence", "0");
  const answer = await connection.request(subject, JSON.stringify(value), { headers: absent, timeout: 1_000 });
  expect(answer.json()).toMatchObject({ seq: expect.any(Number) });
}

/** One question to JetStream, as the credential lets its holder put it. */
export async function asks<T extends object>(
  connection: NatsConnection,
  subject: string,
  body: object = {},
): Promise<T> {
  const answer = await connection.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout: 1_000 });
  const parsed = answer.json<T>();
  expect(parsed).not.toHaveProperty("error");
  return parsed;
}
