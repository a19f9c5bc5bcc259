import { HoldfastError } from '../../errors.ts';
import { shuffled } from '../../surroundings/ids.ts';
import type { LeaseDependencies } from '../dependencies.ts';

/** DescribeExecution has a quota for the whole account, which refills by 10 to 15 a second. Passes at the end of executions need the quota more. */
const MOST_ASKED = 100;

/** Events of the end arrive within seconds. An older grant is worth a question. */
const ASKED_AFTER_MS = 60_000;

/** What one run of the repair may still ask about executions that hold what others wait for. */
export interface Questions {
  left: number;
  /** How many questions about the executions of bound grants are left. These need not wait for an event. */
  looks: number;
}

export const newQuestions = (): Questions => ({ left: MOST_ASKED, looks: MOST_ASKED });

/** What the run of a message may ask. A key has many messages. */
export const questionsOfMessage = (): Questions => ({ left: 0, looks: MOST_LOOKS });

/** A look asks about the executions of at most this many grants. */
export const MOST_LOOKS = 5;

/**
 * Looks at bound grants, if the run may still ask. Once Step Functions throttles, the run looks no more.
 * @param wanted how many grants the key has
 * @param look receives how many questions it may ask, and returns how many waiters were granted a lease or a permit
 */
export async function lookWithin(
  questions: Questions,
  wanted: number,
  look: (most: number) => Promise<number>,
): Promise<number> {
  const most = Math.min(questions.looks, wanted, MOST_LOOKS);
  if (most <= 0) return 0;
  questions.looks -= most;
  return look(most).catch((error) => {
    if (!(error instanceof HoldfastError) || error.code !== 'Throttled') throw error;
    questions.looks = 0;
    return 0;
  });
}

interface Wanted {
  grants: readonly { execution?: string | undefined; acquiredAt?: number | undefined }[];
  questions: Questions;
  /** Asks about an execution, and ends what it holds if it has ended. @returns how many in line received it */
  end(execution: string): Promise<number>;
}

/**
 * Asks about the executions that hold what others wait for, because the event of an end may be lost (docs/protocols/tasks.md#repair). Once Step
 * Functions throttles, the run asks no more.
 * @returns how many in line received a lease or a permit
 * @throws HoldfastError Unavailable, OutcomeUnknown
 */
export async function endDeadHolders(
  dependencies: LeaseDependencies,
  { grants, questions, end }: Wanted,
): Promise<number> {
  const { clock, ids } = dependencies;
  const isOld = ({ acquiredAt = 0 }: { acquiredAt?: number | undefined }) => acquiredAt + ASKED_AFTER_MS <= clock.now();
  const old = grants.filter(isOld).flatMap(({ execution }) => execution ?? []);
  let granted = 0;
  for (const execution of shuffled([...new Set(old)], ids)) {
    if (questions.left-- <= 0) break;
    granted += await end(execution).catch((error) => {
      if (!(error instanceof HoldfastError) || error.code !== 'Throttled') throw error;
      questions.left = 0;
      return 0;
    });
  }
  return granted;
}
