import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { seededRandom, testSeed } from './test/support/chance/seed.ts';

/** What plays random rounds, or has parts that are left out of `npm test`: `npm run test:races` plays all of it. */
const playsInFull = (file: string) =>
  file.endsWith('.test.ts') &&
  (file.endsWith(ONLY_IN_FULL) || /(support\/time\/rounds|\/suite)\.ts'/.test(readFileSync(file, 'utf8')));
const ONLY_IN_FULL = '.full.test.ts';

/**
 * The files for a full run that plays a part of the rounds (SHARE, in .ci/run). The seed chooses a third of the files without rounds, because
 * `npm test` has just played most of their tests.
 */
function inPart(all: string[]): string[] {
  const random = seededRandom(testSeed());
  return all.filter((file) => random() < 1 / 3 || /\brounds\(|\/suite\.ts/.test(readFileSync(file, 'utf8')));
}
const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((file) => join('test', file));

/** About what `npm run release` writes, which takes a minute of computing: `npm run test:release` plays them. */
const OF_RELEASE = '.release.test.ts';

/** Afterwards, for it compares the roles with what the functions were seen to call in the other tests. */
const ROLES = 'test/deployment/roles.test.ts';

const suite = (name: string, include: string[], exclude: string[] = []) => ({
  extends: true as const,
  test: { name, include, exclude },
});

const usual = [
  suite('product', ['test/**/*.test.ts'], [`test/**/*${ONLY_IN_FULL}`, `test/**/*${OF_RELEASE}`, ROLES]),
  { extends: true as const, test: { name: 'roles', include: [ROLES], sequence: { groupOrder: 1 } } },
];

function suites() {
  if (process.env.RACES === 'full') {
    const inFull = files.filter((file) => playsInFull(file) && !file.endsWith(OF_RELEASE)).sort();
    return [suite('races', Number(process.env.SHARE ?? 1) < 1 ? inPart(inFull) : inFull)];
  }
  return process.env.RELEASE === 'full' ? [suite('release', [`test/**/*${OF_RELEASE}`])] : usual;
}

export default defineConfig({
  test: {
    globalSetup: 'test/support/emulators/emulators.ts',
    setupFiles: 'test/support/stack/environment.ts',
    testTimeout: 180_000,
    hookTimeout: 600_000,
    // What is polled comes late on a busy machine, and not after the second that Vitest waits by itself.
    expect: { poll: { timeout: 120_000 } },
    // For two cores: a worker and its emulator take turns, and some tests wait more than they compute.
    maxWorkers: 4,
    // The AWS SDK is loaded once for each worker, not for each file; test/support/stack/environment.ts tidies up between them.
    isolate: false,
    // Requests and answers die young.
    execArgv: ['--max-semi-space-size=64'],
    projects: suites(),
  },
});
