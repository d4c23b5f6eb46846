/** A client that only connects: no library, so that the clients' own CPU does not hide the callout's. */
import { connect } from "node:net";
import type { User } from "../../shared/nats/connect.ts";

/** Whether the broker admitted it. The connection is closed at once. */
export function rawConnect(port: number, { jwt, key }: User, token: string, name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    let greeted = false;
    const end = (admitted: boolean) => {
      socket.destroy();
      resolve(admitted);
    };
    socket.setNoDelay(true);
    socket.setTimeout(10_000, () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (text.includes("-ERR")) return end(false);
      if (greeted) return text.includes("PONG") ? end(true) : undefined;
      const nonce = /"nonce":"([^"]+)"/.exec(text)?.[1];
      if (nonce === undefined) return;
      greeted = true;
      text = "";
      const sig = Buffer.from(key.sign(Buffer.from(nonce))).toString("base64url");
      const options = { verbose: false, pedantic: false, lang: "bench", version: "1", protocol: 1 };
      socket.write(`CONNECT ${JSON.stringify({ ...options, jwt, sig, name, auth_token: token })}\r\nPING\r\n`);
    });
  });
}
