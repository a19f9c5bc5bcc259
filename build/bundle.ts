import { type BuildResult, build } from 'esbuild';
import { type BundledPackage, packagesOf } from './licences.ts';

/** One deployable ES module from TypeScript, `folder`/index.mjs, with the files that it loads beside it. */
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
 * What `holdfast deploy` needs of the AWS SDK, in one file for every Node that the command runs on.
 * @returns the packages of npm of which something is in it
 */
export async function bundleDeployment(outfile: string): Promise<BundledPackage[]> {
  const { metafile } = await build({
    entryPoints: ['deployment/command.ts'],
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
