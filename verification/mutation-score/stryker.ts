import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { start } from '../../test/support/emulators/emulators.ts';

interface Place {
  line: number;
  column: number;
}

/** Lines and columns count from 1, and the end is the column after the last one. */
export interface Mutant {
  status: 'Killed' | 'Timeout' | 'Survived' | 'NoCoverage' | 'Ignored' | 'RuntimeError' | 'CompileError' | 'Pending';
  statusReason?: string;
  mutatorName: string;
  replacement: string;
  location: { start: Place; end: Place };
  /** Whether the mutant is evaluated while its module loads. */
  static?: boolean;
}

/** The result of each mutant, by file. */
export type Mutants = Record<string, Mutant[]>;

export interface Job {
  /** Files, or `file:line:column-line:column`, with columns that count from 0. */
  mutate: string[];
  testFiles: string[];
  /** How many tests each mutant meets at most. */
  max: number;
  /** How much longer than usual its tests may take, in ms. */
  patienceMs: number;
}

const ROOT = join(import.meta.dirname, '../..');

/** Runs Stryker once. @throws Error if it ends without a report */
export async function runStryker({ mutate, testFiles, max, patienceMs }: Job): Promise<Mutants> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-mutation-score-'));
  // One process waits while a mutant hangs in another.
  const concurrency = availableParallelism() + 1;
  const { stop, ...provided } = await start(concurrency);
  const require = createRequire(import.meta.url);
  const report = join(folder, 'report.json');
  const doubts = join(folder, 'doubts.txt');
  await writeFile(doubts, '');
  const settings = {
    testRunner: 'nearest-tests',
    vitest: { configFile: 'verification/mutation-score/vitest.config.ts', related: false },
    plugins: [
      require.resolve('@stryker-mutator/vitest-runner'),
      join(import.meta.dirname, 'nearest-tests.js'),
      join(import.meta.dirname, 'prose.js'),
    ],
    ignorers: ['prose'],
    coverageAnalysis: 'perTest',
    ignoreStatic: false,
    concurrency,
    timeoutMS: patienceMs,
    // The limit is a share of the time of all tests that run a mutant, even if it is tried with fewer.
    timeoutFactor: Number.isFinite(max) ? 0.3 : 1.5,
    dryRunTimeoutMinutes: 30,
    mutate,
    testFiles,
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: report },
    tempDirName: join(folder, 'sandbox'),
    // Stryker would rewrite it with an interface that TypeScript 7 does not have. The tests need none.
    tsconfigFile: 'none',
    ignorePatterns: [
      'bench',
      'clients/typescript/dist',
      'dist',
      'docs',
      '.venv*',
      'verification/mutation-score/report',
      'verification/**/node_modules',
    ],
    allowEmpty: true,
    logLevel: 'warn',
  };
  try {
    const settingsFile = join(folder, 'stryker.json');
    await writeFile(settingsFile, JSON.stringify(settings));
    const stryker = join(import.meta.dirname, 'node_modules/@stryker-mutator/core/bin/stryker.js');
    const child = spawn(process.execPath, [stryker, 'run', settingsFile], {
      cwd: ROOT,
      // The seed is fixed and the rounds are few, so that a mutant does not survive by chance.
      env: {
        ...process.env,
        MUTATION_SCORE: JSON.stringify(provided),
        MUTATION_TESTS: String(max),
        // Stryker shows nothing of what its workers print.
        MUTATION_DOUBTS: doubts,
        SEED: '1',
        ROUNDS: '5',
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error(`Stryker ended with exit code ${code}`);
    for (const doubt of new Set((await readFile(doubts, 'utf8')).split('\n').filter(Boolean)))
      console.warn(`fails alone, so it catches nothing: ${doubt}`);
    const { files } = JSON.parse(await readFile(report, 'utf8')) as { files: Record<string, { mutants: Mutant[] }> };
    return Object.fromEntries(Object.entries(files).map(([file, { mutants }]) => [file, mutants]));
  } finally {
    await stop();
    await rm(folder, { recursive: true, force: true });
  }
}
