/**
 * Bounded concurrency: at most `limit` jobs run at once; the first failure stops admitting and is thrown after the
 * running ones have ended.
 */

/** Runs `job` over the items with at most `limit` at once. Results keep the order of the items. */
export async function mapPooled<Item, Result>(
  items: readonly Item[],
  limit: number,
  job: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = new Array(items.length);
  let next = 0;
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    while (next < items.length && failures.length === 0) {
      const index = next;
      next += 1;
      const item = items[index] as Item;
      try {
        results[index] = await job(item, index);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, items.length)) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}
