import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type BuildOptions, build, type OutputChunk, type OutputOptions, type Plugin } from 'rolldown';
import { inputsOf } from '../../build/bundle.ts';
import { type BundledPackage, packagesOf } from '../../build/licences.ts';
import manifest from './package.json' with { type: 'json' };

/** The modules that the main entry loads only when a call needs them. */
const LATER = ['sigv4', 'content', 'several', 'once', 'rate'];

/** The other entries. They import the main entry by the name of the package, so that the runtime picks the build that suits it. */
const OTHERS = ['lambda', 'direct', 'handlers', 'durable', 'node-cron', 'testing'];

/** The modules that the other entries import from the main entry, instead of containing a copy. */
const IN_MAIN = ['index', 'acquire', 'attempt', 'errors', 'query', 'release', 'surroundings'];

const EXTERNAL = /^(@aws-sdk\/|node:)/;

/**
 * Writes the entries of the package, and the modules that the main entry loads later. All other entries import the main entry, so that there is one class
 * of errors, and no code is there twice.
 *
 * The main entry is written twice: minified into `outdir`, for browsers, and readable into `outdir/node`, because a Node stack trace names the functions
 * and lines of the file that runs. The other entries are readable. `outdir/cjs` contains all entries as CommonJS, for `require` on Node before 20.19, and
 * for Jest.
 * @returns the npm packages whose code is in the bundles
 */
export async function bundle(outdir: string): Promise<BundledPackage[]> {
  const [small, readable, others, ...commonJs] = await Promise.all([
    mainWithLater(true),
    mainWithLater(false),
    bundleOthers(),
    ...['index', ...OTHERS].map(inCommonJs),
  ]);
  await write(outdir, [...small, ...others]);
  await write(join(outdir, 'node'), readable);
  await write(join(outdir, 'cjs'), commonJs.flat());
  await writeFile(join(outdir, 'cjs/package.json'), '{ "type": "commonjs" }\n');
  return packagesOf(inputsOf(others).keys());
}

async function write(folder: string, files: OutputChunk[]): Promise<void> {
  for (const { fileName, code } of files) {
    await mkdir(dirname(join(folder, fileName)), { recursive: true });
    await writeFile(join(folder, fileName), code);
  }
}

/** A browser has no environment variables, so the build for browsers leaves out the code that reads them. */
const WITHOUT_ENVIRONMENT: Plugin = {
  name: 'without-environment',
  load: (id) => (id.endsWith('/src/environment.ts') ? 'export const optionsIn = (_, given) => given;' : undefined),
};

const sourceOf = (name: string) => `src/${name}.ts`;

async function mainWithLater(minify: boolean): Promise<OutputChunk[]> {
  const fileOf = (name: string) => (LATER.includes(name) ? `./${name}.js` : './index.js');
  const built = await Promise.all([
    chunks({ input: [sourceOf('index')], plugins: [apart(LATER, fileOf), minify && WITHOUT_ENVIRONMENT] }, { minify }),
    chunks({ input: LATER.map(sourceOf), plugins: [apart(IN_MAIN, fileOf)] }, { minify }),
  ]);
  return built.flat();
}

const bundleOthers = () =>
  chunks({
    input: OTHERS.map(sourceOf),
    external: EXTERNAL,
    plugins: [apart(IN_MAIN, () => manifest.name)],
  });

/** One file, because Jest refuses `import()` in a CommonJS module. */
const inCommonJs = (name: string) =>
  chunks(
    {
      input: [sourceOf(name)],
      external: EXTERNAL,
      plugins: name === 'index' ? [] : [apart(IN_MAIN, () => './index.js')],
    },
    { format: 'cjs', codeSplitting: false },
  );

async function chunks(options: BuildOptions, written: OutputOptions = {}): Promise<OutputChunk[]> {
  const { output } = await build({
    cwd: import.meta.dirname,
    platform: 'neutral',
    resolve: { mainFields: ['module', 'main'] },
    transform: { target: 'es2022' },
    preserveEntrySignatures: 'strict',
    logLevel: 'warn',
    checks: { ineffectiveDynamicImport: false },
    write: false,
    ...options,
    output: {
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'direct/[name]-[hash].js',
      comments: false,
      minify: false,
      ...written,
    },
  });
  return output.filter((file) => file.type === 'chunk');
}

/** Keeps these modules of the client out of a bundle, which imports them from other files instead. */
const apart = (names: string[], fileOf: (name: string) => string): Plugin => ({
  name: 'apart',
  resolveId(path, importer) {
    const name = /^\.\/([\w-]+)\.ts$/.exec(path)?.[1];
    const ours = importer !== undefined && dirname(importer) === join(import.meta.dirname, 'src');
    return ours && name !== undefined && names.includes(name) ? { id: fileOf(name), external: true } : undefined;
  },
});
