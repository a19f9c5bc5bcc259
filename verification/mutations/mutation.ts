/** A way to break the product on purpose, and the history or the test that must show it. */
export type Mutation = { name: string; changes: Change[] } & (ShownByHistory | ShownByTest);

export interface ShownByHistory {
  /** In the words of the checker. */
  promise: string;
  /** The capability whose histories show it. */
  only: 'leases' | 'commits' | 'nameservice' | 'queue' | 'pools' | 'expiry' | 'patience';
  /** Of the history that shows it. */
  seed: number;
}

/** For what too few histories show, and what no promise to callers tells. */
export interface ShownByTest {
  /** Of the test's name, its beginning: rounds and seed may follow. */
  test: { file: string; name: string };
}

export interface Change {
  file: string;
  /** Must be there exactly once. */
  search: string;
  replace: string;
}
