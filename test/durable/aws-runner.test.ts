import { describe } from 'vitest';
import { hasRunner, startRunner } from '../support/emulators/durable-functions.ts';
import { durableLeases } from './suite.ts';

const whySkipped = hasRunner ? '' : ' (skipped: .ci/run installs it into .venv)';

describe.skipIf(!hasRunner)(
  `withLease of holdfast-client/durable, over AWS's local runner${whySkipped}`,
  { timeout: 120_000 },
  () => durableLeases(startRunner),
);
