/** Requests page after page, and yields their rows. An empty page may be followed by others. */
export async function* paged<Page extends { nextCursor: string | null }, Row>(
  ask: (cursor: { cursor?: string }) => Promise<Page>,
  rows: (page: Page) => Row[],
): AsyncGenerator<Row, void, undefined> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Page = await ask(cursor === undefined ? {} : { cursor });
    yield* rows(page);
    cursor = page.nextCursor;
  }
}
