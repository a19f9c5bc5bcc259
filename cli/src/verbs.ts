import type { Verb } from './verb.ts';
import { run } from './verbs/run.ts';
import { status } from './verbs/status.ts';

/** Every verb, in the order of the help. */
export const VERBS: Record<string, Verb> = {
  run,
  status,
};
