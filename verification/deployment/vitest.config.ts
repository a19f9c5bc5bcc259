import { defineConfig } from 'vitest/config';

/** Deploys to an emulator of AWS that checks IAM. The files share one emulator, each with stages of its own. */
export default defineConfig({
  test: {
    include: ['verification/deployment/*.test.ts'],
    globalSetup: 'verification/deployment/support/setup.ts',
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
  },
});
