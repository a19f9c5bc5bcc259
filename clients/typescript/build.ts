import { execFile } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'rolldown';
import { licencesText } from '../../build/licences.ts';
import { MAIN_BYTES, MAX_BYTES, MINIFIED_BYTES } from './budget.ts';
import { bundle } from './bundle.ts';

const DIST = join(import.meta.dirname, 'dist');

/** The name of a module without a file, which imports the code to be measured. */
const ENTRY = 'measured.js';

await rm(DIST, { recursive: true, force: true });
const [packages] = await Promise.all([bundle(DIST), declarations()]);
await writeFile(join(DIST, 'LICENSES.txt'), await licencesText(packages));
// npm packs the licence of the package, and not that of the repository.
await copyFile(join(import.meta.dirname, '../../LICENSE'), join(import.meta.dirname, 'LICENSE'));
const mainNames = Object.keys(MAIN_BYTES);
const sizes = new Map<string, number>();
for (const name of mainNames) sizes.set(name, await gzipped(name));
sizes.set(
  'all',
  mainNames.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0),
);
for (const name of Object.keys(MINIFIED_BYTES)) sizes.set(name, await minified(name));
console.log(`holdfast-client, bytes after gzip: ${JSON.stringify(Object.fromEntries(sizes))}`);
for (const [part, maxBytes] of Object.entries({ ...MAX_BYTES, ...MINIFIED_BYTES }))
  if ((sizes.get(part) ?? 0) > maxBytes) {
    console.error(`holdfast-client: ${part} is over its budget of ${maxBytes} bytes`);
    process.exitCode = 1;
  }

/** Writes the declarations of the client. The compiler also writes those of the domain, which are removed, because no public type names them. */
async function declarations(): Promise<void> {
  const tsc = join(import.meta.dirname, '../../node_modules/typescript/bin/tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', import.meta.dirname]);
  const written = join(DIST, 'types/clients/typescript/src');
  await mkdir(join(DIST, 'cjs'), { recursive: true });
  for (const file of await readdir(written)) {
    const typed = await readFile(join(written, file), 'utf8');
    const text = typed.replace(/((?:from |import\()["']\.\/[\w-]+)\.ts/g, '$1.js');
    await Promise.all([DIST, join(DIST, 'cjs')].map((folder) => writeFile(join(folder, file), text)));
  }
  await rm(join(DIST, 'types'), { recursive: true });
}

/** The size of a file of the main entry. @throws Error if the file loads another file, whose size would not be counted */
async function gzipped(name: string): Promise<number> {
  const code = await readFile(join(DIST, `${name}.js`));
  for (const [, next = ''] of `${code}`.matchAll(/(?:\bfrom|\bimport)\s*\(?"\.\/([^"]+)"/g))
    if (!mainNames.includes(next.slice(0, -3))) throw new Error(`${name}.js loads ${next}`);
  return gzipSync(code).length;
}

/** The size of an entry, or of one export of `handlers` without the code of the others, as a bundler writes it. */
async function minified(name: string): Promise<number> {
  const isEntry = name === 'handlers' || name === 'durable' || name === 'testing';
  const contents = isEntry ? `export * from './${name}.js'` : `export { ${name} } from './handlers.js'`;
  const { output } = await build({
    input: ENTRY,
    external: ['holdfast-client'],
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === ENTRY ? join(DIST, ENTRY) : undefined),
        load: (id) => (id === join(DIST, ENTRY) ? contents : undefined),
      },
    ],
    ...{ logLevel: 'warn', write: false, output: { format: 'esm', minify: true, codeSplitting: false } },
  });
  return gzipSync(output[0].code).length;
}
