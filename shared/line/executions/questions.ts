import { HoldfastError } from '../../errors.ts';
import type { LeaseDependencies } from '../dependencies.ts';
import { hasClient } from '../message.ts';
import { isDurable } from './allowed.ts';

/** DescribeExecution has a quota for the whole account, which refills by 10 to 15 a second. Passes at the end of executions need the quota more. */
const MOST_ASKED = 200;

/** Most that a run asks about tasks that keep others out. */
const MOST_TASKS = 100;

/** Events of the end arrive within seconds. An older grant with a ttl is worth a question. */
const ASKED_AFTER_MS = 60_000;

/** A look asks about at most this many executions. */
export const MOST_LOOKS = 5;

/** A key with holders about whose executions no call has asked for a while. */
export interface DueKey {
  key: string;
  /** When a call last asked, in epoch milliseconds. 0 if no call has asked. */
  lookedAt: number;
  /** How many executions a look would ask about. */
  most: number;
}

/** What one run of the repair may ask, and the keys that it is to ask about once it has seen all of them. */
export interface Questions {
  /** How many questions are left about holders. */
  holders: number;
  /** How many questions are left about tasks that are first in line and do not fit. */
  tasks: number;
  /** Whether the run asks about grants with a ttl too. */
  withTtl: boolean;
  /** By key. */
  due: Map<string, DueKey>;
  /** Whether the run has left a question to the next run. */
  isCutShort: boolean;
}

export const newQuestions = (): Questions => ({
  ...{ holders: MOST_ASKED, tasks: MOST_TASKS, withTtl: true, due: new Map(), isCutShort: false },
});

/** What the run of a message may ask. A key has many messages. */
export const questionsOfMessage = (): Questions => ({
  ...newQuestions(),
  holders: MOST_LOOKS,
  tasks: 0,
  withTtl: false,
});

/** What a look has done. */
export interface Looked {
  /** How many grants have ended. */
  ended: number;
  /** How many in line were given a lease or a permit. */
  granted: number;
}

export const NOTHING: Looked = { ended: 0, granted: 0 };

/** A process without a client leaves the look to others, so the client decides before any write. @throws as `hasClient` */
export const canAsk = (dependencies: LeaseDependencies, execution: string): Promise<boolean> =>
  hasClient(dependencies, isDurable(execution));

interface Holder {
  execution?: string | undefined;
  acquiredAt?: number | undefined;
  claimTtlMs?: number | undefined;
}

/**
 * True for a grant about whose execution the repair asks. A grant with a ttl is worth a question only if others wait for the key, which the mark shows.
 * For a bound grant, the only ticket may be that of its own task, which was not notified in time. A grant that its caller has yet to claim ends by the
 * grant window.
 */
export function isWorthAsking<Grant extends Holder>(
  grant: Grant,
  { isBound, isMarked, now }: { isBound: boolean; isMarked: boolean; now: number },
): grant is Grant & { execution: string } {
  const { execution, acquiredAt = 0, claimTtlMs } = grant;
  if (execution === undefined || claimTtlMs !== undefined) return false;
  return isBound || (isMarked && acquiredAt + ASKED_AFTER_MS <= now);
}

/**
 * Asks about the holders of one of the keys that are due, if the run may still ask. Once AWS throttles, the run asks no more.
 * @param look receives how many questions it may ask
 * @returns how many in line were given a lease or a permit
 */
export async function askWithin(
  questions: Questions,
  { most }: DueKey,
  look: (most: number) => Promise<Looked>,
): Promise<number> {
  const allowed = Math.min(most, questions.holders);
  if (allowed <= 0) {
    questions.isCutShort = true;
    return 0;
  }
  questions.holders -= allowed;
  try {
    return (await look(allowed)).granted;
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'Throttled') throw error;
    Object.assign(questions, { holders: 0, isCutShort: true });
    return 0;
  }
}
