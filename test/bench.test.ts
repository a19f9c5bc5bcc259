import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { charts } from '../bench/figures.ts';
import { withFigures } from '../bench/publish.ts';
import { readResults } from '../bench/results.ts';
import { withScaleTables } from '../bench/scale-doc.ts';
import { overBudget } from '../build/budget.ts';

const results = await readResults();

describe('the figures of bench/results.json', () => {
  it('are those of the README', async () => {
    const readme = await readFile('README.md', 'utf8');
    expect(withFigures(readme, results)).toBe(readme);
  });

  it('are those of the charts that the README shows', async () => {
    const drawn = charts(results);
    expect(drawn.length).toBeGreaterThan(0);
    for (const { file, digest } of drawn) expect(await readFile(file, 'utf8'), file).toContain(digest);
  });

  it('keep every bar, or say why not', () => {
    const silent = Object.values(results.measurements)
      .flatMap(({ figures }) => figures)
      .filter(({ bar }) => bar?.verdict === 'missed');
    expect(silent).toEqual([]);
  });
});

it('docs/scale.md quotes what the arithmetic prints', async () => {
  const document = await readFile('docs/scale.md', 'utf8');
  expect(withScaleTables(document)).toBe(document);
});

describe('the size budget', () => {
  it('tells a function that is over it, by which part, and one that has none', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-budget-'));
    try {
      await writeFile(join(folder, 'index.mjs'), `import"./loaded.mjs";${' '.repeat(479)}`);
      await writeFile(join(folder, 'loaded.mjs'), ' '.repeat(1500));
      await writeFile(join(folder, 'later.mjs'), ' '.repeat(2000));
      const functions = ['small', 'large', 'new'].map((name) => ({ name, bundle: folder }));
      const complaints = await overBudget(functions, {
        small: { loaded: 2, all: 4 },
        large: { loaded: 1.9, all: 4 },
      });
      expect(complaints).toEqual([
        'large: loaded is 2.0 kB, over its budget of 1.9 kB',
        'new has no budget: add "new": { "loaded": 3, "all": 5 } to build/size-budget.json',
      ]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
