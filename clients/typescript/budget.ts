/**
 * The most bytes of each part of the main entry in a browser, after gzip. `index` is what `import 'holdfast-client'` loads. The client loads the other
 * parts later: the signer at the first signed request, uploads at the first commit with content, several leases at the first `withLeases`, a slot at the
 * first `once`, and a rate at the first `rate`.
 */
export const MAIN_BYTES = { index: 7100, sigv4: 800, content: 1000, several: 900, once: 1400, rate: 1200 };

/** With the sum of all parts of the main entry. README.md and docs/client.md name `index` and `all`. */
export const MAX_BYTES = { ...MAIN_BYTES, all: 12_100 };

/** The most bytes of the other entries, and of each wrapper of a handler, as a bundler writes them, after gzip and without the main entry. */
export const MINIFIED_BYTES = {
  handlers: 3050,
  durable: 1900,
  testing: 9500,
  leased: 1536,
  middyLease: 1536,
  leasedRecords: 2000,
  onceRecords: 2000,
  onceHandler: 1536,
};
