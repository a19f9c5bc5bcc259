import { playModel } from './command.ts';
import { MIXES, MUTANTS, SMALL } from './mixes.ts';

const help =
  'node verification/models/leases/run.ts: checks a model of the queue (docs/protocols/queue.md) by seeded walks, and small scenarios completely.';

process.exitCode = playModel({ help, small: SMALL, mixes: MIXES, mutants: MUTANTS }) ? 0 : 1;
