import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type MinifyOptions, type MinifyOutput, minify as terser } from 'terser';
import manifest from '../package.json' with { type: 'json' };

/**
 * Terser, which finds a few bytes in a hundred more than esbuild does, and takes seconds for them. Tests that bundle the same
 * code name a folder in HOLDFAST_MINIFIED, where results are kept by what they are made of.
 */
export async function minify(code: string, options: MinifyOptions): Promise<MinifyOutput> {
  const folder = process.env.HOLDFAST_MINIFIED;
  if (!folder) return terser(code, options);
  const digest = createHash('sha256')
    .update(JSON.stringify([manifest.devDependencies.terser, code, options]))
    .digest('hex');
  const file = join(folder, `${digest}.json`);
  const kept = await readFile(file, 'utf8').catch(() => undefined);
  if (kept !== undefined) return JSON.parse(kept);
  const made = await terser(code, options);
  await mkdir(folder, { recursive: true });
  await writeFile(`${file}.${process.pid}`, JSON.stringify(made));
  await rename(`${file}.${process.pid}`, file);
  return made;
}
