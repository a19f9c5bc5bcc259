import type { Model } from '../engine/command.ts';
import { MIXES, MUTANTS, SMALL } from './mixes.ts';
import { KeyWorld } from './world.ts';

/** docs/protocols/kinds.md */
export const KEYS: Model = { name: 'keys', game: KeyWorld, small: SMALL, mixes: MIXES, mutants: MUTANTS };
