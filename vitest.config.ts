import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: 'test/support/emulators.ts',
    setupFiles: 'test/support/environment.ts',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    maxWorkers: 2,
    // The AWS SDK is loaded once for each worker, not for each file; test/support/environment.ts tidies up between them.
    isolate: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'product',
          include: ['test/**/*.test.ts'],
          exclude: ['test/deployment/**'],
        },
      },
      // Afterwards: it compares the roles with what the functions were seen to call in the tests above.
      // One worker, so that its files share what is packaged.
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/deployment/*.test.ts'],
          exclude: ['test/deployment/bundle.test.ts'],
          sequence: { groupOrder: 1 },
          maxWorkers: 1,
          testTimeout: 60_000,
        },
      },
      // Afterwards: it takes what the packaging has built.
      {
        extends: true,
        test: { name: 'bundle', include: ['test/deployment/bundle.test.ts'], sequence: { groupOrder: 2 } },
      },
    ],
  },
});
