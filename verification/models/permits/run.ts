import { playModel } from '../leases/command.ts';
import { MIXES, MUTANTS, SMALL } from './mixes.ts';
import { PoolWorld, settle } from './world.ts';

const help =
  'node verification/models/permits/run.ts: checks a model of pools (docs/protocols/pools.md) by seeded walks, and small scenarios completely.';

const game = { World: PoolWorld, settle };
process.exitCode = playModel({ help, game, small: SMALL, mixes: MIXES, mutants: MUTANTS }) ? 0 : 1;
