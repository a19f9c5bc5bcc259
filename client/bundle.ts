import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type BuildOptions, build, type Metafile, type OutputFile, type Plugin } from 'esbuild';
import { minify } from 'terser';
import { type BundledPackage, packagesOf } from '../build/licences.ts';
import manifest from './package.json' with { type: 'json' };

/** Loaded when they are needed first. */
const LATER = ['sigv4', 'content', 'several', 'once'];

/** The other entries. They import the main entry by the name of the package, so each has the build of the runtime. */
const OTHERS = ['lambda', 'direct', 'handlers', 'durable', 'node-cron', 'testing'];

/** What other entries take from the main one, which exports it. */
const IN_MAIN = ['index', 'acquire', 'attempt', 'errors', 'give-back', 'query', 'surroundings', 'watched-signal'];

/**
 * Writes the entries of the package, and what the main one loads later. All others import the main one, so that an error
 * of one is an error of all, and nothing is there twice. The main one is written small into `outdir`, for browsers, and readable into
 * `outdir/node`: a stack trace of Node names the functions and lines of the file that runs. The other entries are readable.
 * @param isSmall whether to spend the second that makes the first as small as it can be
 * @returns the packages of npm that have code in it
 */
export async function bundle(outdir: string, { isSmall = true } = {}): Promise<BundledPackage[]> {
  const [small, readable, others] = await Promise.all([
    mainWithLater({ outdir, minifySyntax: true }),
    mainWithLater({ outdir: join(outdir, 'node') }),
    bundleOthers(outdir),
  ]);
  const texts = [
    ...(await Promise.all(small.map(async ({ path, text }) => ({ path, text: isSmall ? await smaller(text) : text })))),
    ...readable,
    ...others.files,
  ];
  for (const { path } of texts) await mkdir(dirname(path), { recursive: true });
  await Promise.all(texts.map(({ path, text }) => writeFile(path, text)));
  return packagesOf(others.inputs);
}

const COMMON = {
  absWorkingDir: import.meta.dirname,
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  mainFields: ['module', 'main'],
  target: 'es2022',
  write: false,
  logLevel: 'warning',
} as const satisfies BuildOptions;

const sourceOf = (name: string) => `src/${name}.ts`;

async function mainWithLater(options: BuildOptions): Promise<OutputFile[]> {
  const fileOf = (name: string) => (LATER.includes(name) ? `./${name}.js` : './index.js');
  const built = await Promise.all([
    build({ ...COMMON, ...options, entryPoints: [sourceOf('index')], plugins: [apart(LATER, fileOf)] }),
    build({ ...COMMON, ...options, entryPoints: LATER.map(sourceOf), plugins: [apart(IN_MAIN, fileOf)] }),
  ]);
  return built.flatMap(({ outputFiles }) => outputFiles ?? []);
}

async function bundleOthers(outdir: string): Promise<{ files: OutputFile[]; inputs: string[] }> {
  const { outputFiles, metafile } = await build({
    ...COMMON,
    outdir,
    entryPoints: OTHERS.map(sourceOf),
    chunkNames: 'direct/[name]-[hash]',
    splitting: true,
    metafile: true,
    external: ['@aws-sdk/*', 'node:*'],
    plugins: [apart(IN_MAIN, () => manifest.name)],
  });
  const loaded = loadedBy(
    OTHERS.map((name) => join(outdir, `${name}.js`)),
    metafile,
  );
  return {
    files: outputFiles.filter(({ path }) => loaded.has(path)),
    inputs: Object.keys(metafile.inputs).map((file) => join(import.meta.dirname, file)),
  };
}

/** esbuild also writes what was behind an `import()` that it found to be dead code. */
function loadedBy(entries: string[], { outputs }: Metafile): Set<string> {
  const absolute = (file: string) => join(import.meta.dirname, file);
  const importsOf = new Map(Object.entries(outputs).map(([file, { imports }]) => [absolute(file), imports]));
  const loaded = new Set(entries);
  // A set that grows while it is walked is walked to its end.
  for (const file of loaded)
    for (const { path, external } of importsOf.get(file) ?? []) if (!external) loaded.add(absolute(path));
  return loaded;
}

/** Terser finds four bytes in a hundred more, after gzip, than esbuild does by itself. */
async function smaller(text: string): Promise<string> {
  const { code = '' } = await minify(text, { module: true, ecma: 2020, compress: { ecma: 2020, passes: 3 } });
  return code;
}

/** Leaves imports of these modules of the client to other files. */
const apart = (names: string[], fileOf: (name: string) => string): Plugin => ({
  name: 'apart',
  setup: (setup) => {
    setup.onResolve({ filter: /^\.\/[\w-]+\.ts$/ }, ({ path, importer }) => {
      const name = path.slice(2, -3);
      const ours = dirname(importer) === join(import.meta.dirname, 'src');
      return ours && names.includes(name) ? { path: fileOf(name), external: true } : undefined;
    });
  },
});
