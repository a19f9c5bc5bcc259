import { build, type OutputAsset, type OutputChunk } from 'rolldown';
import { type BundledPackage, packagesOf } from './licences.ts';

/** The files that have code in a bundle, with their bytes before they are minified. */
export type Inputs = ReadonlyMap<string, number>;

/** Bundles TypeScript into an ES module that Lambda can run, `folder`/index.mjs, beside the files that it loads later. */
export async function bundle(source: string, folder: string): Promise<Inputs> {
  const { output } = await build({
    input: { index: source },
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] },
    transform: { target: 'node24' },
    // index.mjs must export only what the source exports, and not what other files of the bundle need from it.
    preserveEntrySignatures: 'strict',
    logLevel: 'warn',
    // Some functions load a module later that other functions need at the start.
    checks: { ineffectiveDynamicImport: false },
    output: {
      dir: folder,
      format: 'esm',
      minify: true,
      sourcemap: true,
      entryFileNames: '[name].mjs',
      chunkFileNames: '[name]-[hash].mjs',
      // Each file costs 0.3 ms of a cold start, so all code of the start goes into one file, except helpers of the bundler. An
      // `import()` loads the other files.
      codeSplitting: { groups: [{ name: 'start', tags: ['$initial'] }] },
    },
  });
  return inputsOf(output);
}

/** @returns the source files that have code in a bundle, with their bytes before they are minified */
export function inputsOf(output: readonly (OutputAsset | OutputChunk)[]): Inputs {
  const modules = output.flatMap((file) => (file.type === 'chunk' ? Object.entries(file.modules) : []));
  return new Map(modules.flatMap(([file, { renderedLength }]) => (renderedLength > 0 ? [[file, renderedLength]] : [])));
}

/**
 * Bundles a program with everything that it needs into one file, for every version of Node.js that the command supports.
 * @param source absolute, or relative to the root of the repository
 * @returns the npm packages that have code in the bundle
 */
export async function bundleProgram(source: string, outfile: string): Promise<BundledPackage[]> {
  const { output } = await build({
    input: source,
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] },
    transform: { target: 'node20' },
    logLevel: 'warn',
    checks: { ineffectiveDynamicImport: false },
    output: { file: outfile, format: 'esm', minify: true, codeSplitting: false },
  });
  return packagesOf(inputsOf(output).keys());
}
