import { join } from 'node:path';
import { build } from 'esbuild';
import type { PageFiles } from './serve.ts';

/** The page's script and style, each as one file. */
export async function bundlePage(): Promise<PageFiles> {
  const [script, style] = await Promise.all(
    ['main.ts', 'style.css'].map(async (entry) => {
      const { outputFiles } = await build({
        absWorkingDir: join(import.meta.dirname, 'page'),
        entryPoints: [entry],
        bundle: true,
        format: 'esm',
        platform: 'browser',
        target: 'es2023',
        minify: true,
        write: false,
        logLevel: 'warning',
      });
      return outputFiles[0]?.text ?? '';
    }),
  );
  return { script: script ?? '', style: style ?? '' };
}
