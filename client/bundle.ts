import { type BuildOptions, build, type Plugin } from 'esbuild';

/** Writes the entries of the package. The others import the main one, so that an error of one is an error of all. */
export async function bundle(outdir: string): Promise<void> {
  const common: BuildOptions = {
    absWorkingDir: import.meta.dirname,
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target: 'es2022',
    minify: true,
    sourcemap: 'linked',
    logLevel: 'warning',
  };
  const main: Plugin = {
    name: 'main',
    setup: (setup) => {
      setup.onResolve({ filter: /^\.\/index\.ts$/ }, () => ({ path: './index.js', external: true }));
    },
  };
  await build({ ...common, entryPoints: ['src/index.ts'] });
  const external = ['@aws-sdk/*', 'node:*'];
  await build({ ...common, entryPoints: ['src/lambda.ts', 'src/direct.ts'], external, plugins: [main] });
}
