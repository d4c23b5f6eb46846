/** A configured URL without query and fragment, its path prefix kept, ready to be appended to (identity §10). */
export function baseUrl(text: string): string {
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`.replace(/\/+$/, "");
}
