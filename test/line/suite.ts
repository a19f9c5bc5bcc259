import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { isFull, isPart } from '../support/time/rounds.ts';
import { askingAgain } from './asking-again.ts';
import { boundGrants } from './bound.ts';
import { racesOfRedrives } from './bound-races.ts';
import { breaks } from './breaks.ts';
import { racesOfCallbacks } from './callback-races.ts';
import { callbacksOfDurableFunctions } from './callbacks.ts';
import { callers } from './callers.ts';
import { counts } from './counts.ts';
import { executions } from './executions.ts';
import { expiredRows } from './expired-rows.ts';
import { fullLines } from './full.ts';
import { graces } from './grace.ts';
import { handOffs } from './hand-offs.ts';
import { looksAtHolders } from './holder-looks.ts';
import { lateWrites } from './late.ts';
import { lostEnds } from './lost-ends.ts';
import { lateNotices } from './notices.ts';
import { overdueTasks } from './overdue.ts';
import { parks } from './parks.ts';
import { polls } from './polls.ts';
import { redrivenExecutions } from './redrives.ts';
import { duplicateCalls } from './requests.ts';
import { rulesOfCalls } from './rules.ts';
import { secondWaiters } from './second-waiters.ts';
import { retriedTasks } from './tasks.ts';
import { withdrawals } from './withdrawals.ts';
import { leaseLine, permitLine } from './world.ts';

const WORLDS = { lease: leaseLine, permit: permitLine };

/** What the line promises in front of each kind of lock. */
const TOPICS = [
  askingAgain,
  boundGrants,
  looksAtHolders,
  racesOfRedrives,
  breaks,
  racesOfCallbacks,
  callbacksOfDurableFunctions,
  callers,
  counts,
  executions,
  expiredRows,
  fullLines,
  graces,
  handOffs,
  lateWrites,
  polls,
  lostEnds,
  lateNotices,
  overdueTasks,
  parks,
  redrivenExecutions,
  duplicateCalls,
  rulesOfCalls,
  secondWaiters,
  retriedTasks,
  withdrawals,
];

/**
 * Runs the topics for one kind of lock. `npm test` plays half of the topics, each for one of the kinds, which the seed chooses. A full run
 * plays all, or, if it plays only a part of the rounds beside `npm test`, what that leaves out.
 */
export async function testLine(kind: keyof typeof WORLDS): Promise<void> {
  const random = seededRandom(testSeed());
  const kinds = [...Object.keys(WORLDS), 'left to full runs', 'left to full runs'];
  for (const cases of TOPICS) {
    const isChosen = kind === kinds[Math.floor(random() * kinds.length)];
    if (isFull ? !isPart || !isChosen : isChosen) await cases(WORLDS[kind]);
  }
}
