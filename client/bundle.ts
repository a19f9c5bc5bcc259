import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type BuildOptions, build, type OutputFile, type Plugin } from 'esbuild';
import { minify } from 'terser';

/** Loaded when they are needed first. */
const LATER = ['sigv4', 'content', 'several'];

/** What they and the other entries take from the main one, which exports it. */
const IN_MAIN = ['index', 'attempt', 'errors', 'query', 'surroundings', 'watched-signal'];

/**
 * Writes the entries of the package, and what the main one loads later. All others import the main one, so that an error
 * of one is an error of all, and nothing is there twice.
 * @param isSmall whether to spend the second that makes it as small as it can be, with source maps
 */
export async function bundle(outdir: string, { isSmall = true } = {}): Promise<void> {
  const common = {
    absWorkingDir: import.meta.dirname,
    outdir,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target: 'es2022',
    minifySyntax: true,
    sourcemap: isSmall ? 'external' : false,
    write: false,
    logLevel: 'warning',
  } satisfies BuildOptions;
  const fileOf = (name: string) => (LATER.includes(name) ? `./${name}.js` : './index.js');
  const main = await build({ ...common, entryPoints: ['src/index.ts'], plugins: [apart(LATER, fileOf)] });
  const entryPoints = [...LATER, 'lambda', 'direct', 'handlers', 'testing'].map((name) => `src/${name}.ts`);
  const external = ['@aws-sdk/*', 'node:*'];
  const others = await build({ ...common, splitting: true, entryPoints, external, plugins: [apart(IN_MAIN, fileOf)] });
  await mkdir(outdir, { recursive: true });
  const files = [...main.outputFiles, ...others.outputFiles];
  const scripts = files.filter(({ path }) => path.endsWith('.js'));
  await Promise.all(scripts.map((one) => (isSmall ? writeSmaller(one, files) : writeFile(one.path, one.text))));
}

/** Terser finds four bytes in a hundred more, after gzip, than esbuild does by itself. */
async function writeSmaller({ path, text }: OutputFile, files: OutputFile[]): Promise<void> {
  const map = files.find((file) => file.path === `${path}.map`)?.text ?? '';
  const { code = '', map: smaller = '' } = await minify(text, {
    module: true,
    ecma: 2020,
    compress: { ecma: 2020, passes: 3 },
    sourceMap: { content: map, url: `${basename(path)}.map` },
  });
  await Promise.all([writeFile(path, code), writeFile(`${path}.map`, `${smaller}`)]);
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
