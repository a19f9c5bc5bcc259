import { describe } from 'vitest';
import { startDouble } from '../support/emulators/durable-functions.ts';
import { durableLeases } from './suite.ts';

describe('withLease of holdfast-client/durable, over the local stack', { timeout: 60_000 }, () =>
  durableLeases(startDouble),
);
