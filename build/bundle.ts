import { build, type OutputAsset, type OutputChunk } from 'rolldown';
import { type BundledPackage, packagesOf } from './licences.ts';

/** The files that have code in a bundle, with their bytes before they are minified. */
export type Inputs = ReadonlyMap<string, number>;

/** Bundles TypeScript into one deployable ES module, `folder`/index.mjs, beside the files that it loads. */
export async function bundle(source: string, folder: string): Promise<Inputs> {
  const { output } = await build({
    input: { index: source },
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] },
    transform: { target: 'node24' },
    // index.mjs exports the names of the source, and no names that only other files of the bundle need.
    preserveEntrySignatures: 'strict',
    logLevel: 'warn',
    // A module that some functions load later may be a part of the start of other functions.
    checks: { ineffectiveDynamicImport: false },
    output: {
      dir: folder,
      format: 'esm',
      minify: true,
      sourcemap: true,
      entryFileNames: '[name].mjs',
      chunkFileNames: '[name]-[hash].mjs',
      // Each file takes 0.3 ms of a cold start, so one file has all code of the start but the helpers of the bundler, if a function needs those. An `import()` loads each other file.
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
 * Bundles a program with all that it needs into one file, for every Node that the command supports.
 * @param source absolute, or from the root of the repository
 * @returns the npm packages that have code in it
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
