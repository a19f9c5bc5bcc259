import { defineConfig } from 'vitest/config';

/** Terraform and its provider of AWS are large: only `npm run verify -- terraform` runs them. */
const FOLDER = process.env.TERRAFORM ? 'terraform/' : '';

/** Deploys to an emulator of AWS that checks IAM. The files share one emulator, each with stages of its own. */
export default defineConfig({
  test: {
    include: [`verification/deployment/${FOLDER}*.test.ts`],
    globalSetup: 'verification/deployment/support/setup.ts',
    // Stops what hangs. A busy machine takes minutes for what another one does in seconds.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: 2,
  },
});
