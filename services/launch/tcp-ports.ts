/** Ports that a start needs, looked at before anything is started. */
import { createServer } from "node:net";

export interface WantedPort {
  readonly port: number;
  /** What would listen there. */
  readonly purpose: string;
  /** How to choose another one. */
  readonly remedy: string;
}

/** One line of advice for each port that something listens on already, or two are to listen on. */
export async function portsInUse(wanted: readonly WantedPort[]): Promise<string[]> {
  const lines: string[] = [];
  for (const [i, { port, purpose, remedy }] of wanted.entries()) {
    const other = wanted.slice(0, i).find((earlier) => earlier.port === port);
    if (other) {
      lines.push(`port ${port} is wanted twice, for ${other.purpose} and for ${purpose}: ${remedy}`);
      continue;
    }
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
