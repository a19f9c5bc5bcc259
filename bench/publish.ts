import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { charts, figuresBlock, summaryBlock } from './figures.ts';
import { type Results, readResults, runsOf } from './results.ts';
import { withScaleTables } from './scale-doc.ts';

const MARKERS = /(<!-- figures: .*? -->\n\n)[\s\S]*?(\n\n<!-- end of figures -->)/;

/** The documents that show figures, and which figures they show. */
const SHOWN: { file: string; block: (results: Results) => string }[] = [
  { file: 'README.md', block: summaryBlock },
  { file: 'docs/benchmarks.md', block: figuresBlock },
];

/** Each document that shows figures, as it is and as it should be. @throws Error if its markers are gone */
export async function documents(results: Results): Promise<{ file: string; current: string; written: string }[]> {
  return Promise.all(
    SHOWN.map(async ({ file, block }) => {
      const current = await readFile(file, 'utf8');
      if (!MARKERS.test(current))
        throw new Error(`${file} has no place for the figures: <!-- figures: ... --> to <!-- end of figures -->`);
      return {
        file,
        current,
        written: current.replace(MARKERS, (_, begin, end) => `${begin}${block(results)}${end}`),
      };
    }),
  );
}

/** Writes the figures of bench/results.json into the documents and the charts, and the arithmetic into docs/scale.md. */
export async function publish(): Promise<void> {
  const results = await readResults();
  for (const line of mixed(results)) console.log(line);
  await writeFile('docs/scale.md', withScaleTables(await readFile('docs/scale.md', 'utf8')));
  for (const { file, written } of await documents(results)) await writeFile(file, written);
  const libraries = join(import.meta.dirname, 'libraries');
  if (!existsSync(join(libraries, 'node_modules/vega-lite/package.json')))
    return console.log('the charts are not drawn: npm run verify -- bench-libraries installs what draws them');
  const renderer = spawn(process.execPath, [join(libraries, 'render.mjs')], { stdio: ['pipe', 'inherit', 'inherit'] });
  renderer.stdin.end(JSON.stringify(charts(results)));
  const [code] = await once(renderer, 'exit');
  if (code !== 0) throw new Error('the charts could not be drawn');
}

/** @returns a line for each run that has measured figures, or none if all figures are of one run */
function mixed(results: Results): string[] {
  const [first, ...others] = runsOf(results);
  if (others.length === 0) return [];
  return [
    `The figures are of ${others.length + 1} runs. Most of them: ${first?.when}`,
    ...others.map(({ when, names }) => `From another run: ${names.join(', ')}. ${when}`),
    'npm run bench, without --only, measures all of them in one run.',
  ];
}

if (import.meta.main) await publish();
