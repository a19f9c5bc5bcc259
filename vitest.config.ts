import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** What plays random rounds, or has parts that are left out of `npm test`: `npm run test:races` plays all of it. */
const playsInFull = (file: string) =>
  file.endsWith('.test.ts') && (file.endsWith(ONLY_IN_FULL) || /support\/rounds\.ts'/.test(readFileSync(file, 'utf8')));
const ONLY_IN_FULL = '.full.test.ts';
const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((file) => join('test', file));

const inFull = [{ extends: true as const, test: { name: 'races', include: files.filter(playsInFull) } }];

/** Afterwards, for it compares the roles with what the functions were seen to call in the other tests. */
const ROLES = 'test/deployment/roles.test.ts';

const usual = [
  {
    extends: true as const,
    test: { name: 'product', include: ['test/**/*.test.ts'], exclude: [`test/**/*${ONLY_IN_FULL}`, ROLES] },
  },
  { extends: true as const, test: { name: 'roles', include: [ROLES], sequence: { groupOrder: 1 } } },
];

export default defineConfig({
  test: {
    globalSetup: 'test/support/emulators.ts',
    setupFiles: 'test/support/environment.ts',
    testTimeout: 180_000,
    hookTimeout: 600_000,
    // What is polled comes late on a busy machine, and not after the second that Vitest waits by itself.
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: 2,
    // The AWS SDK is loaded once for each worker, not for each file; test/support/environment.ts tidies up between them.
    isolate: false,
    // Requests and answers die young.
    execArgv: ['--max-semi-space-size=64'],
    projects: process.env.RACES === 'full' ? inFull : usual,
  },
});
