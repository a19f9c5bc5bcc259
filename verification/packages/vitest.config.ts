import { defineConfig } from 'vitest/config';

/** What users install: the packages from a registry of this machine, the image of the command, and the workflows that publish both. */
export default defineConfig({
  test: {
    include: ['verification/packages/*.test.ts'],
    // Against what hangs: a busy machine takes minutes for what another one does in seconds.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
