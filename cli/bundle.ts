import { appendFile, chmod } from 'node:fs/promises';
import { brotliCompressSync } from 'node:zlib';
import { build, type Plugin } from 'esbuild';
import { bundlePage } from '../console/bundle.ts';

/** Writes the command as one file that runs without any package. */
export async function bundle(outfile: string): Promise<void> {
  await build({
    absWorkingDir: import.meta.dirname,
    entryPoints: ['src/main.ts'],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minify: true,
    banner: { js: '#!/usr/bin/env node' },
    plugins: [page],
    logLevel: 'warning',
  });
  await appendPage(outfile);
  await chmod(outfile, 0o755);
}

/** In front of the page, in the last line of the file. */
const MARK = '\n//page:';

/**
 * The page is packed in a comment at the end of the file: nothing that starts a job has to parse it, and there it takes
 * the least room after gzip.
 */
const page: Plugin = {
  name: 'page',
  setup: (setup) => {
    setup.onLoad({ filter: /console\/files\.ts$/ }, () => ({
      contents: `import { readFile } from 'node:fs/promises';
import { brotliDecompressSync } from 'node:zlib';
export async function pageFiles() {
  const own = await readFile(new URL(import.meta.url), 'utf8');
  const packed = own.slice(own.lastIndexOf(${JSON.stringify(MARK)}) + ${MARK.length});
  return JSON.parse(brotliDecompressSync(Buffer.from(packed, 'base64')).toString());
}`,
      loader: 'js',
    }));
  },
};

async function appendPage(file: string): Promise<void> {
  const packed = brotliCompressSync(JSON.stringify(await bundlePage()));
  await appendFile(file, `${MARK}${packed.toString('base64')}\n`);
}
