import { execFile } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { bundle } from './bundle.ts';

/** What `import 'holdfast-client'` may load, in bytes after gzip; the signer, at the first signed request; and uploads. */
const MAX_BYTES = { loaded: 5000, all: 6800 };

const DIST = join(import.meta.dirname, 'dist');

await rm(DIST, { recursive: true, force: true });
await Promise.all([bundle(DIST), declarations()]);
const files = await loaded('index.js');
const size = { loaded: await gzipped(files), all: await gzipped(await loaded('index.js', true)) };
console.log(`holdfast-client: ${size.loaded} bytes after gzip are loaded at once, and ${size.all} are all`);
for (const part of ['loaded', 'all'] as const)
  if (size[part] > MAX_BYTES[part]) {
    console.error(`holdfast-client: ${part} is over its budget of ${MAX_BYTES[part]} bytes`);
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

/** The files that importing one loads; with `later`, also those that it loads at some call. */
async function loaded(file: string, later = false, found = new Set<string>()): Promise<Set<string>> {
  if (found.has(file)) return found;
  found.add(file);
  const code = await readFile(join(DIST, file), 'utf8');
  const imports = later ? /(?:\bfrom|\bimport)\s*\(?"\.\/([^"]+)"/g : /(?:\bfrom|\bimport)\s*"\.\/([^"]+)"/g;
  for (const [, next = ''] of code.matchAll(imports)) await loaded(next, later, found);
  return found;
}

async function gzipped(files: Set<string>): Promise<number> {
  const sizes = [...files].map(async (file) => gzipSync(await readFile(join(DIST, file))).length);
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}
