import { type BuildResult, build } from 'esbuild';
import { type BundledPackage, packagesOf } from './licences.ts';

/** Bundles TypeScript into one deployable ES module, `folder`/index.mjs, beside the files that it loads. */
export function bundle(source: string, folder: string): Promise<BuildResult<{ metafile: true }>> {
  return build({
    entryPoints: { index: source },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    minify: true,
    // Credential providers that a Lambda function does not use stay in files that it does not load.
    splitting: true,
    sourcemap: 'linked',
    // Some CommonJS dependencies call require for Node's own modules.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    logLevel: 'warning',
    metafile: true,
  });
}

/**
 * Bundles a program with all that it needs into one file, for every Node that the command supports.
 * @param source absolute, or from the root of the repository
 * @returns the npm packages that have code in it
 */
export async function bundleProgram(source: string, outfile: string): Promise<BundledPackage[]> {
  const { metafile } = await build({
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
