/**
 * In bytes after gzip, in a browser: what `import 'holdfast-client'` loads, and what the client loads later: the signer at the first signed
 * request, uploads at the first commit with content, several leases at the first `withLeases`, a slot at the first `once`, a rate at the first `rate`.
 */
export const MAIN_BYTES = { index: 7100, sigv4: 800, content: 1000, several: 900, once: 1400, rate: 1200 };

/** README.md and docs/client.md name `index` and `all`, the sum of all parts of the main entry. */
export const MAX_BYTES = { ...MAIN_BYTES, all: 12_100 };

/** The most bytes after gzip that a bundler takes for the other entries, and for each wrapper of a handler, without the main entry. */
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
