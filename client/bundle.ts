import { dirname, join } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';

/** Loaded when they are needed first. */
const LATER = ['sigv4', 'content'];

/** What they and the other entries take from the main one, which exports it. */
const IN_MAIN = ['index', 'attempt', 'errors', 'query'];

/**
 * Writes the entries of the package, and what the main one loads later. All others import the main one, so that an error
 * of one is an error of all, and nothing is there twice.
 */
export async function bundle(outdir: string): Promise<void> {
  const common: BuildOptions = {
    absWorkingDir: import.meta.dirname,
    outdir,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target: 'es2022',
    minify: true,
    sourcemap: 'linked',
    logLevel: 'warning',
  };
  const fileOf = (name: string) => (LATER.includes(name) ? `./${name}.js` : './index.js');
  await build({ ...common, entryPoints: ['src/index.ts'], plugins: [apart(LATER, fileOf)] });
  const entryPoints = [...LATER, 'lambda', 'direct'].map((name) => `src/${name}.ts`);
  const external = ['@aws-sdk/*', 'node:*'];
  await build({ ...common, splitting: true, entryPoints, external, plugins: [apart(IN_MAIN, fileOf)] });
}

/** Leaves imports of these modules of the client to other files. */
const apart = (names: string[], fileOf: (name: string) => string): Plugin => ({
  name: 'apart',
  setup: (setup) => {
    setup.onResolve({ filter: /^\.\/\w+\.ts$/ }, ({ path, importer }) => {
      const name = path.slice(2, -3);
      const ours = dirname(importer) === join(import.meta.dirname, 'src');
      return ours && names.includes(name) ? { path: fileOf(name), external: true } : undefined;
    });
  },
});
