import { chmod } from 'node:fs/promises';
import { build } from 'esbuild';

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
    logLevel: 'warning',
  });
  await chmod(outfile, 0o755);
}
