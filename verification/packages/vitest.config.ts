import { defineConfig } from 'vitest/config';

/** What users receive: the packages from a registry of this machine, the image of the command, the workflows that publish both, and the documents. */
export default defineConfig({
  test: {
    include: ['verification/packages/*.test.ts'],
    globalSetup: `${import.meta.dirname}/support/tools.ts`,
    // Stops what hangs. A busy machine takes minutes for what another one does in seconds.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
