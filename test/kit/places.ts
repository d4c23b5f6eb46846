/** The two places that races run on: one server, and a cluster of three. */
import { startBroker } from "./broker.ts";
import { startCluster } from "./cluster.ts";
import { openStore, type TestStore } from "./store.ts";

export interface Place {
  readonly stores: readonly TestStore[];
  /** One of the stores, as many processes have each their own. */
  at(n: number): TestStore;
  stop(): Promise<void>;
}

/** Several stores, each on a connection of its own, over the servers in turn. */
export async function startPlace(servers: 1 | 3, stores = 3): Promise<Place> {
  const broker = servers === 1 ? await startBroker() : await startCluster({ servers });
  const urls = "urls" in broker ? broker.urls : [broker.url];
  const opened: TestStore[] = [];
  const at = (n: number): TestStore => {
    const one = opened[n % opened.length];
    if (!one) throw new Error("no store is open");
    return one;
  };
  const stop = async () => {
    await Promise.all(opened.map((one) => one.close()));
    await broker.stop();
  };
  try {
    for (let n = 0; n < stores; n += 1) {
      opened.push(await openStore(urls[n % urls.length] ?? "", n === 0 ? {} : { streams: [] }));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { stores: opened, at, stop };
}
