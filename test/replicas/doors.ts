/** HTTP as behind a proxy: the gateways take turns, and one that refuses the connection is passed over. */
import { request } from "node:http";
import { AuthorityError, isErrorCode } from "../../shared/errors.ts";

export interface Door {
  readonly url: string;
  /** Of a loopback face. */
  readonly capability?: string;
}

export class Doors {
  readonly #doors: readonly Door[];
  #turn = 0;

  constructor(doors: readonly Door[]) {
    this.#doors = doors;
  }

  /** The answer's body. A refusal is an `AuthorityError`, a connection that breaks Node's own error. */
  async post<T>(path: string, body: object): Promise<T> {
    this.#turn += 1;
    const inOrder = this.#doors.map((_, n) => this.#doors[(this.#turn + n) % this.#doors.length]);
    for (const [n, door] of inOrder.entries()) {
      if (!door) continue;
      try {
        return await post<T>(door, path, body);
      } catch (error) {
        const refused = (error as { code?: unknown }).code === "ECONNREFUSED";
        if (!refused || n === inOrder.length - 1) throw error;
      }
    }
    throw new Error("no door");
  }
}

function post<T>({ url, capability }: Door, path: string, body: object): Promise<T> {
  return new Promise((resolve, reject) => {
    const headers = {
      "content-type": "application/json",
      ...(capability === undefined ? {} : { authorization: `Bearer ${capability}` }),
    };
    // A connection of its own: none is reused whose end has not been heard of yet.
    const asked = request(`${url}${path}`, { method: "POST", agent: false, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("error", reject);
      response.on("end", () => {
        const answer = JSON.parse(text);
        if (response.statusCode === 200) return resolve(answer);
        const { code, error } = answer;
        reject(new AuthorityError(isErrorCode(code) ? code : "internal", `${response.statusCode} ${error}`));
      });
    });
    asked.on("error", reject);
    asked.end(JSON.stringify(body));
  });
}
