import type { Model } from '../engine/command.ts';
import { MIXES, MUTANTS, SMALL } from './mixes.ts';
import { PoolWorld } from './world.ts';

/** docs/protocols/pools.md */
export const PERMITS: Model = { name: 'permits', game: PoolWorld, small: SMALL, mixes: MIXES, mutants: MUTANTS };
