import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { inputsOf } from '../build/bundle.ts';
import { licencesText, packagesOf } from '../build/licences.ts';
import { bundlePage } from '../console/bundle.ts';
import { readService } from '../infrastructure/read.ts';

const HERE = import.meta.dirname;
const DIST = join(HERE, 'dist');

const SQLITE = 'node:sqlite';

const service = await readService();

/** The modules that read the repository, and the code by which the package replaces them. */
const REPLACED: [file: string, code: () => Promise<string> | string][] = [
  ['infrastructure/read.ts', () => `export const readService = async () => (${JSON.stringify(service)});`],
  [
    'console/files.ts',
    async () => `const files = ${JSON.stringify(await bundlePage())};export const pageFiles = async () => files;`,
  ],
  ['local/program.ts', () => `export * from './program-of-package.ts';`],
  [
    'local/handlers.ts',
    () =>
      `const load = {${service.functions.map(loading).join()}};export const loadHandler = async (source) => (await load[source]()).handler;`,
  ],
];
const loading = ({ source }: { source: string }) =>
  `'${source}': () => import(${JSON.stringify(join(HERE, '..', source))})`;

const inOnePackage: Plugin = {
  name: 'in one package',
  // Node 20 does not have SQLite, so the stack keeps its data in memory there.
  resolveId: (id) => (id === SQLITE ? { id: `\0${SQLITE}` } : undefined),
  load: (path) =>
    path === `\0${SQLITE}`
      ? `export const { DatabaseSync } = process.getBuiltinModule?.('${SQLITE}') ?? {};`
      : REPLACED.find(([file]) => path === join(HERE, '..', file))?.[1](),
};

await rm(DIST, { recursive: true, force: true });
const { output } = await build({
  cwd: HERE,
  input: 'dev.ts',
  platform: 'node',
  resolve: { mainFields: ['module', 'main'] },
  transform: { target: 'node20' },
  logLevel: 'warn',
  checks: { ineffectiveDynamicImport: false },
  plugins: [inOnePackage],
  output: { file: join(DIST, 'dev.mjs'), format: 'esm', minify: true, codeSplitting: false },
});
const packages = await packagesOf(inputsOf(output).keys());
await writeFile(join(DIST, 'LICENSES.txt'), await licencesText(packages));
// npm packs the licence of the package, and not that of the repository.
await copyFile(join(HERE, '../LICENSE'), join(HERE, 'LICENSE'));
