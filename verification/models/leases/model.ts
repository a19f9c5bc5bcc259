import type { Model } from '../engine/command.ts';
import { MIXES, MUTANTS, SMALL } from './mixes.ts';
import { LeaseWorld } from './world.ts';

/** docs/protocols/leases.md and queue.md */
export const LEASES: Model = { name: 'leases', game: LeaseWorld, small: SMALL, mixes: MIXES, mutants: MUTANTS };
