import { rm } from 'node:fs/promises';
import { build } from 'esbuild';
import { readService } from '../local/service.ts';

/** One folder for each function of serverless.yml: dist/leases/acquire/index.mjs from functions/leases/acquire.ts. */
const { functions } = await readService();
await rm('dist', { recursive: true, force: true });
await Promise.all(functions.map(({ source, bundle }) => bundleFunction(source, bundle)));

function bundleFunction(source: string, folder: string) {
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
  });
}
