import { HoldfastError } from '../../errors.ts';
import { logLine } from '../../surroundings/log.ts';
import { ASK_EVERY_MS, type LeaseDependencies } from '../dependencies.ts';
import { hasClient } from '../line/notify.ts';
import { isDurable } from './allowed.ts';

/** DescribeExecution has a quota for the whole account, which refills by 10 to 15 a second. Passes at the end of executions need the quota more. */
const MOST_ASKED = 200;

/** The most questions of a run about tasks that keep others out. */
const MOST_TASKS = 100;

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

/** How much a run of the repair may ask, and the keys about which it asks once it has seen all keys. */
export interface Questions {
  /** How many questions are left about holders. */
  holders: number;
  /** How many questions are left about tasks that are next in line and do not fit. */
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
  /** How many waiters were served. */
  granted: number;
}

export const NOTHING: Looked = { ended: 0, granted: 0 };

/** Check this before any write: a process without a client must not note a look, because that would keep others from asking. @throws as `hasClient` */
export const canAsk = (dependencies: LeaseDependencies, execution: string): Promise<boolean> =>
  hasClient(dependencies, isDurable(execution));

/**
 * Asks about the holders of a key that is due, if the run has questions left. Once AWS throttles, the run stops asking.
 * @param look receives how many questions it may ask
 * @returns how many waiters were served
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

/** Calls in line that are not next leave the question to the next waiter for up to this long, or all of them would ask at the same moment. */
export const LOOK_PATIENCE_MS = 15_000;

/** Whether no call has asked for a while, as far as the record shows. Instants are epoch milliseconds. */
export const isDue = ({ lookedAt = 0 }: { lookedAt?: number | undefined }, now: number): boolean =>
  lookedAt < now - ASK_EVERY_MS;

/** Logs why the look of a call failed. The call goes on, and the next look decides. @returns a look that has done nothing */
export function leftToNextLook(error: unknown): Looked {
  const level = error instanceof HoldfastError ? 'WARN' : 'ERROR';
  logLine(level, {
    message: 'the execution of a bound holder could not be judged',
    cause: error instanceof Error ? error.message : error,
  });
  return NOTHING;
}
