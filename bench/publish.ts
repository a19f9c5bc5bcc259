import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { charts, figuresBlock } from './figures.ts';
import { type Results, readResults } from './results.ts';
import { withScaleTables } from './scale-doc.ts';

const MARKERS = /(<!-- figures: .*? -->\n\n)[\s\S]*?(\n\n<!-- end of figures -->)/;

/** @throws Error when the markers are gone */
export function withFigures(readme: string, results: Results): string {
  if (!MARKERS.test(readme))
    throw new Error('README.md has no place for the figures: <!-- figures: ... --> to <!-- end of figures -->');
  return readme.replace(MARKERS, (_, begin, end) => `${begin}${figuresBlock(results)}${end}`);
}

/** Carries bench/results.json into the README and the charts, and the arithmetic into docs/scale.md. */
export async function publish(): Promise<void> {
  const results = await readResults();
  await writeFile('docs/scale.md', withScaleTables(await readFile('docs/scale.md', 'utf8')));
  await writeFile('README.md', withFigures(await readFile('README.md', 'utf8'), results));
  const peers = join(import.meta.dirname, 'peers');
  if (!existsSync(join(peers, 'node_modules/vega-lite/package.json')))
    return console.log('the charts are not drawn: npm run bench:peers installs what draws them');
  const renderer = spawn(process.execPath, [join(peers, 'render.mjs')], { stdio: ['pipe', 'inherit', 'inherit'] });
  renderer.stdin.end(JSON.stringify(charts(results)));
  const [code] = await once(renderer, 'exit');
  if (code !== 0) throw new Error('the charts could not be drawn');
}

if (import.meta.main) await publish();
