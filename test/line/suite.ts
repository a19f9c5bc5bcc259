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
import type { LineWorld } from './world.ts';

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

/** Runs all topics for one kind of lock. */
export async function testLine(lineWorld: LineWorld): Promise<void> {
  for (const cases of TOPICS) await cases(lineWorld);
}
