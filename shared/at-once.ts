/**
 * The same for each of many things, a bounded number at a time; the results in order. The first failure is thrown, and
 * nothing further is begun.
 *
 * ```ts
 * const rows = await atOnce(STORE.readsAtOnce, keys, (key) => store.read(key, work));
 * ```
 */
export async function atOnce<T, R>(most: number, items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = items.entries();
  let failed = false;
  const worker = async (): Promise<void> => {
    for (const [at, item] of left) {
      if (failed) return;
      results[at] = await act(item);
    }
  };
  const working = Array.from({ length: Math.min(most, items.length) }, () =>
    worker().catch((error: unknown) => {
      failed = true;
      throw error;
    }),
  );
  await Promise.all(working);
  return results;
}
