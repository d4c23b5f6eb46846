/** Ports that a start needs, looked at before anything is started. */
import { createServer } from "node:net";

export interface WantedPort {
  readonly port: number;
  /** What would listen there. */
  readonly purpose: string;
  /** How to choose another one. */
  readonly remedy: string;
}

/** One line of advice for each port that something listens on already. */
export async function portsInUse(wanted: readonly WantedPort[]): Promise<string[]> {
  const lines: string[] = [];
  for (const { port, purpose, remedy } of wanted) {
    if (await isFree(port)) continue;
    lines.push(
      `port ${port} (${purpose}) is in use: stop what listens there (\`lsof -i :${port}\` or \`ss -ltnp\` names it), or ${remedy}`,
    );
  }
  return lines;
}

/** Bound for a moment on the loopback address. */
function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
