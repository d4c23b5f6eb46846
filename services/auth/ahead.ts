/** A step begun before those that come first have ended: its refusal waits until it is awaited in its turn. */
export function ahead<T>(begun: Promise<T>): Promise<T> {
  begun.catch(() => {});
  return begun;
}
