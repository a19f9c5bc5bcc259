import { execFile } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { bundle } from './bundle.ts';

/**
 * In bytes after gzip: what `import 'holdfast-client'` loads, and what it loads later: the signer at the first signed request, uploads at the first
 * commit with content, several leases at the first `withLeases`. `all` is their sum.
 */
const MAIN = { index: 5300, sigv4: 800, content: 1000, several: 900 };
const MAX_ALL = 7800;

/** What a bundler takes for each wrapper of a handler, without the main module. */
const WRAPPERS = { leased: 1500, middyLease: 1500, leasedRecords: 1500 };

/** The other entries, without the main module. */
const ENTRIES = { handlers: 2100, testing: 3700 };

const DIST = join(import.meta.dirname, 'dist');

await rm(DIST, { recursive: true, force: true });
await Promise.all([bundle(DIST), declarations()]);
const sizes = new Map<string, number>();
for (const name of Object.keys({ ...MAIN, ...ENTRIES })) sizes.set(name, await gzipped(name));
for (const name of Object.keys(WRAPPERS)) sizes.set(name, await shaken(name));
sizes.set(
  'all',
  Object.keys(MAIN).reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0),
);
console.log(`holdfast-client, bytes after gzip: ${JSON.stringify(Object.fromEntries(sizes))}`);
for (const [part, most] of Object.entries({ ...MAIN, ...ENTRIES, ...WRAPPERS, all: MAX_ALL }))
  if ((sizes.get(part) ?? 0) > most) {
    console.error(`holdfast-client: ${part} is over its budget of ${most} bytes`);
    process.exitCode = 1;
  }

/** The compiler writes those of the domain too, which no public type names. */
async function declarations(): Promise<void> {
  const tsc = join(import.meta.dirname, '../node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', import.meta.dirname]);
  const written = join(DIST, 'types/client/src');
  for (const file of await readdir(written)) {
    const text = await readFile(join(written, file), 'utf8');
    await writeFile(join(DIST, file), text.replace(/((?:from |import\()["']\.\/[\w-]+)\.ts/g, '$1.js'));
  }
  await rm(join(DIST, 'types'), { recursive: true });
}

/** @throws Error where the file would load another one that nobody counts */
async function gzipped(name: string): Promise<number> {
  const code = await readFile(join(DIST, `${name}.js`));
  for (const [, next = ''] of `${code}`.matchAll(/(?:\bfrom|\bimport)\s*\(?"\.\/([^"]+)"/g))
    if (!Object.keys(MAIN).includes(next.slice(0, -3))) throw new Error(`${name}.js loads ${next}`);
  return gzipSync(code).length;
}

/** One export of the wrappers, without the code of the others. */
async function shaken(name: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: `export { ${name} } from './handlers.js'`, resolveDir: DIST },
    bundle: true,
    format: 'esm',
    minify: true,
    external: ['./index.js'],
    write: false,
  });
  return gzipSync(outputFiles[0]?.contents ?? '').length;
}
