import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
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

describe('npm run bench', () => {
  const bench = (...options: string[]) => node('bench/run.ts', ...options);

  it('tells its measurements', async () => {
    const { stdout } = await bench('--help');
    for (const name of Object.keys(results.measurements)) expect(stdout).toMatch(new RegExp(`^ +${name} `, 'm'));
  });

  it.each([
    [['--only', 'nothing'], 'npm run bench: there is no measurement nothing; see --help\n'],
    [['--fast'], "npm run bench: Unknown option '--fast'\n"],
  ])('refuses %j in one line', async (options, line) => {
    await expect(bench(...options)).rejects.toMatchObject({ code: 1, stderr: line });
  });

  it('takes along what it started, when it is stopped', async () => {
    const parent = `
      const { endsWithUs } = await import('./bench/children.ts');
      const { spawn } = await import('node:child_process');
      console.log(endsWithUs(spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })).pid);
      process.exit(130);`;
    const { stdout } = (await node('--input-type=module', '--eval', parent).catch((error) => error)) as Output;
    const pid = Number(stdout);
    expect(pid).toBeGreaterThan(0);
    for (let tries = 0; isRunning(pid); tries++) {
      expect(tries).toBeLessThan(200);
      await delay(10); // a process that was told to end takes a moment
    }
  });
});

interface Output {
  stdout: string;
  stderr: string;
}

const node = (...parameters: string[]): Promise<Output> => promisify(execFile)(process.execPath, parameters);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
