import { seededRandom, testSeed } from '../support/chance/seed.ts';
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
import { looks } from './looks.ts';
import { lostEnds } from './lost-ends.ts';
import { lateNotices } from './notices.ts';
import { overdueTasks } from './overdue.ts';
import { parks } from './parks.ts';
import { redrivenExecutions } from './redrives.ts';
import { duplicateCalls } from './requests.ts';
import { rulesOfCalls } from './rules.ts';
import { secondWaiters } from './second-waiters.ts';
import { retriedTasks } from './tasks.ts';
import { withdrawals } from './withdrawals.ts';
import { type LineWorld, leaseLine, permitLine } from './world.ts';

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
  looks,
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

/** Leases and permits have code of their own for these, and share the code of the others. */
const OF_BOTH: readonly ((lineWorld: LineWorld) => Promise<void>)[] = [
  boundGrants,
  looksAtHolders,
  racesOfRedrives,
  breaks,
  graces,
  handOffs,
  looks,
];

/** Runs the topics for one kind of lock: all of them, or those of both kinds and those that fall to this kind by seed. */
export async function testLine(kind: 'lease' | 'permit', isWhole: boolean): Promise<void> {
  const random = seededRandom(testSeed());
  for (const cases of TOPICS) {
    const chosen = random() < 0.5 ? 'lease' : 'permit';
    if (isWhole || chosen === kind || OF_BOTH.includes(cases)) await cases(kind === 'lease' ? leaseLine : permitLine);
  }
}
