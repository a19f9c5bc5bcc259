import { HoldfastError } from '../../errors.ts';
import { logLine } from '../../surroundings/log.ts';
import { ASK_EVERY_MS, type LeaseDependencies } from '../dependencies.ts';
import { hasClient } from '../line/notify.ts';
import { isDurable } from './allowed.ts';

/**
 * The most questions of a run about holders. DescribeExecution has a quota for the whole account, which refills by 10
 * to 15 a second, and the passes at the end of executions need it more.
 */
const MAX_HOLDER_QUESTIONS = 200;

/** The most questions of a run about tasks that are next and keep others out. */
const MAX_TASK_QUESTIONS = 100;

export const MAX_QUESTIONS_OF_LOOK = 5;

/** A key with holders about whose executions no call has asked for a while. */
export interface DueKey {
  key: string;
  /** When a call last asked, in epoch milliseconds. 0 if no call has asked. */
  lookedAt: number;
  /** How many executions a look would ask about. */
  questionCount: number;
}

/**
 * How many questions a run of the repair has left, and the keys about whose holders it asks after it has seen all keys.
 */
export interface Questions {
  /** How many questions about holders are left. */
  holders: number;
  /** How many questions are left about tasks that are next and do not fit. */
  tasks: number;
  /** Whether the run asks about grants with a ttl too. */
  withTtl: boolean;
  /** The keys to ask about, by name. */
  due: Map<string, DueKey>;
  /** Whether the run has left a question to the next run. */
  isCutShort: boolean;
}

export const newQuestions = (): Questions => ({
  ...{ holders: MAX_HOLDER_QUESTIONS, tasks: MAX_TASK_QUESTIONS, withTtl: true, due: new Map(), isCutShort: false },
});

/** The questions of a delayed repair. They are few, because a key may have many such repairs. */
export const questionsOfDelayedRepair = (): Questions => ({
  ...newQuestions(),
  holders: MAX_QUESTIONS_OF_LOOK,
  tasks: 0,
  withTtl: false,
});

export interface Looked {
  /** How many grants have ended. */
  ended: number;
  /** How many waiters were served. */
  granted: number;
}

export const NOTHING_ENDED: Looked = { ended: 0, granted: 0 };

/**
 * Whether this process has a client for the question. Check this before the look is noted: the note keeps others from
 * asking.
 * @throws as `hasClient`
 */
export const canAsk = (dependencies: LeaseDependencies, execution: string): Promise<boolean> =>
  hasClient(dependencies, isDurable(execution));

/**
 * Asks about the holders of a key that is due, if the run has questions left. If AWS throttles, the run stops asking.
 * @param look asks at most the number of questions that it receives
 * @returns how many waiters were served
 */
export async function askWithin(
  questions: Questions,
  { questionCount }: DueKey,
  look: (maxQuestions: number) => Promise<Looked>,
): Promise<number> {
  const allowed = Math.min(questionCount, questions.holders);
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

/**
 * How long calls that are not next may leave the question to the next waiter. Otherwise all of them would ask at the
 * same moment.
 */
export const LOOK_PATIENCE_MS = 15_000;

/** Whether no call has asked about the holders for `ASK_EVERY_MS`, by the record. */
export const isDue = ({ lookedAt = 0 }: { lookedAt?: number | undefined }, now: number): boolean =>
  lookedAt < now - ASK_EVERY_MS;

/** Logs why the look of a call failed. The call goes on, and the next look decides. */
export function logFailedLook(error: unknown): Looked {
  const level = error instanceof HoldfastError ? 'WARN' : 'ERROR';
  logLine(level, {
    message: 'the execution of a bound holder could not be judged',
    cause: error instanceof Error ? error.message : error,
  });
  return NOTHING_ENDED;
}
