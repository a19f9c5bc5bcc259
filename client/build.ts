import { execFile } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { bundle } from './bundle.ts';

/**
 * In bytes after gzip: what `import 'holdfast-client'` loads, the signer, which the first signed request loads, and uploads,
 * which the first commit with content loads. All of them together are what a caller may come to load.
 */
const MAX_BYTES = { index: 5200, sigv4: 800, content: 1000, all: 6900 };

const DIST = join(import.meta.dirname, 'dist');

await rm(DIST, { recursive: true, force: true });
await Promise.all([bundle(DIST), declarations()]);
const parts = await Promise.all(
  ['index', 'sigv4', 'content'].map(async (name) => [name, await gzipped(name)] as const),
);
const all = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
const sizes: Record<string, number> = { ...Object.fromEntries(parts), all };
console.log(`holdfast-client, bytes after gzip: ${JSON.stringify(sizes)}`);
for (const [part, most] of Object.entries(MAX_BYTES))
  if ((sizes[part] ?? 0) > most) {
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
    if (!['index.js', 'sigv4.js', 'content.js'].includes(next)) throw new Error(`${name}.js loads ${next}`);
  return gzipSync(code).length;
}
