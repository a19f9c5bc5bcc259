import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { KillersFirst, noteKillers } from './killers-first.ts';
import { lastingWorker } from './lasting-worker.ts';

const here = (path: string) => join(import.meta.dirname, path);

/** Stryker decides which of these tests run, and for how long, by the time that they took before. */
export default defineConfig({
  plugins: [lastingWorker()],
  test: {
    globalSetup: here('emulators.ts'),
    setupFiles: [here('../../test/support/stack/environment.ts'), here('setup.ts')],
    include: ['test/**/*.test.ts'],
    reporters: [noteKillers],
    sequence: { sequencer: KillersFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 1,
    isolate: false,
  },
});
