/** A client that sends what no library would: its own bytes after a signed CONNECT. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { User } from "../../shared/nats/connect.ts";

export class RawClient {
  readonly #socket: Socket;
  #received = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1").on("data", (text: string) => {
      this.#received += text;
    });
  }

  static async open(port: number, { jwt, key }: User): Promise<RawClient> {
    const socket = connect(port, "127.0.0.1");
    const client = new RawClient(socket);
    const info = await client.line(/^INFO (\{.*\}) *\r\n/);
    const nonce: string = JSON.parse(info).nonce;
    const sig = Buffer.from(key.sign(Buffer.from(nonce))).toString("base64url");
    const options = { verbose: false, pedantic: false, headers: true, jwt, sig, lang: "raw", version: "1" };
    socket.write(`CONNECT ${JSON.stringify(options)}\r\n`);
    await client.flush();
    return client;
  }

  /** Publishes this header block and body, whatever they are. */
  publish(subject: string, headers: string, body: string, reply = ""): void {
    const [head, data] = [Buffer.from(headers, "latin1"), Buffer.from(body)];
    this.#socket.write(`HPUB ${subject} ${reply} ${head.length} ${head.length + data.length}\r\n`);
    this.#socket.write(Buffer.concat([head, data, Buffer.from("\r\n")]));
  }

  /** Resolves once the server has taken all that was sent; rejects where it ended the connection. */
  async flush(): Promise<void> {
    this.#received = "";
    this.#socket.write("PING\r\n");
    await this.line(/(?:^|\r\n)(PONG)\r\n/);
  }

  async line(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = pattern.exec(this.#received)?.[1];
      if (found !== undefined) return found;
      if (this.#socket.destroyed || /-ERR/.test(this.#received)) throw new Error(`ended: ${this.#received}`);
      const settled = new AbortController();
      const either = (event: string) => once(this.#socket, event, { signal: settled.signal });
      const [data, close] = [either("data"), either("close")];
      await Promise.race([data, close]).finally(() => settled.abort());
      await Promise.allSettled([data, close]);
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}
