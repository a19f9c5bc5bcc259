/**
 * In bytes after gzip, in a browser: what `import 'holdfast-client'` loads, the signer, which the first signed request loads, and uploads,
 * which the first commit with content loads. All of them together are what a caller may come to load. README.md and docs/client.md name
 * `index` and `all`.
 */
export const MAX_BYTES = { index: 5300, sigv4: 800, content: 1000, all: 7000 };
