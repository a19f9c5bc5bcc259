import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { seededRandom, testSeed } from './test/support/chance/seed.ts';

/** Files that play random rounds, or that `npm test` plays only in part. `npm run test:races` plays them in full. */
const playsInFull = (file: string) =>
  file.endsWith('.test.ts') &&
  (file.endsWith(ONLY_IN_FULL) || /(support\/time\/rounds|\/suite)\.ts'/.test(readFileSync(file, 'utf8')));
const ONLY_IN_FULL = '.full.test.ts';

/**
 * The files for a run with only a part of the rounds (SHARE in .ci/run). Of the files without rounds, the seed chooses a third, because `npm test` has just
 * played most of their tests.
 */
function inPart(all: string[]): string[] {
  const random = seededRandom(testSeed());
  return all.filter((file) => random() < 1 / 3 || /\brounds\(|\/suite\.ts/.test(readFileSync(file, 'utf8')));
}
const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((file) => join('test', file));

/** Tests of what `npm run release` writes. They take a minute, so only `npm run test:release` plays them. */
const OF_RELEASE = '.release.test.ts';

/** Plays after all others, because it compares the roles with what the functions have called in the other tests. */
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
    // On a busy machine, the expected state comes late. By itself, Vitest would wait for only a second.
    expect: { poll: { timeout: 120_000 } },
    // Twice the usual two cores, because a worker and its emulator take turns, and some tests wait more than they compute.
    maxWorkers: 4,
    // So that each worker loads the AWS SDK only once. test/support/stack/environment.ts tidies up between files.
    isolate: false,
    // Requests and answers live only briefly, so a larger young generation saves garbage collection.
    execArgv: ['--max-semi-space-size=64'],
    projects: suites(),
  },
});
