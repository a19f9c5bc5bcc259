import { build as buildProgram } from 'esbuild';
import { build } from 'rolldown';
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
    // index.mjs exports what the source does, and no names that only other files of the bundle need.
    preserveEntrySignatures: 'strict',
    logLevel: 'warn',
    // What one function loads later, another needs at its start.
    checks: { ineffectiveDynamicImport: false },
    output: {
      dir: folder,
      format: 'esm',
      minify: true,
      sourcemap: true,
      entryFileNames: '[name].mjs',
      chunkFileNames: '[name]-[hash].mjs',
      // A cold start pays 0.3 ms for each file that it loads, so all that is loaded at the start is one file. The others
      // are loaded when an `import()` asks for them.
      codeSplitting: { groups: [{ name: 'start', tags: ['$initial'] }] },
    },
  });
  const modules = output.flatMap((file) => (file.type === 'chunk' ? Object.entries(file.modules) : []));
  return new Map(modules.flatMap(([file, { renderedLength }]) => (renderedLength > 0 ? [[file, renderedLength]] : [])));
}

/**
 * Bundles a program with all that it needs into one file, for every Node that the command supports.
 * @param source absolute, or from the root of the repository
 * @returns the npm packages that have code in it
 */
export async function bundleProgram(source: string, outfile: string): Promise<BundledPackage[]> {
  const { metafile } = await buildProgram({
    entryPoints: [source],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    mainFields: ['module', 'main'],
    minify: true,
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    logLevel: 'warning',
    metafile: true,
  });
  return packagesOf(Object.keys(metafile.inputs));
}
