import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { licencesText } from '../build/licences.ts';
import { bundle, bundleSearch } from './bundle.ts';

/** The most bytes of the whole command with its page, after gzip. */
const MAX_BYTES = 60_500;

const DIST = join(import.meta.dirname, 'dist');
const FILE = join(DIST, 'holdfast.mjs');

await rm(DIST, { recursive: true, force: true });
const packages = [...(await bundle(FILE)), ...(await bundleSearch(DIST))];
await writeFile(join(DIST, 'LICENSES.txt'), await licencesText(packages));
// npm packs the licence of the package, and not that of the repository.
await copyFile(join(import.meta.dirname, '../LICENSE'), join(import.meta.dirname, 'LICENSE'));
const size = gzipSync(await readFile(FILE)).length;
console.log(`holdfast: ${size} bytes after gzip`);
if (size > MAX_BYTES) {
  console.error(`holdfast: the command is over its budget of ${MAX_BYTES} bytes`);
  process.exitCode = 1;
}
