import { askingAgain } from '../line/asking-again.ts';
import { callers } from '../line/callers.ts';
import { executions } from '../line/executions.ts';
import { expiredRows } from '../line/expired-rows.ts';
import { fullLines } from '../line/full.ts';
import { graces } from '../line/grace.ts';
import { handOffs } from '../line/hand-offs.ts';
import { lateWrites } from '../line/late.ts';
import { looks } from '../line/looks.ts';
import { lostEnds } from '../line/lost-ends.ts';
import { overdueTasks } from '../line/overdue.ts';
import { duplicateCalls } from '../line/requests.ts';
import { secondWaiters } from '../line/second-waiters.ts';
import { withdrawals } from '../line/withdrawals.ts';
import { permitLine } from '../line/world.ts';

const suite = [
  askingAgain,
  callers,
  executions,
  fullLines,
  graces,
  handOffs,
  lateWrites,
  looks,
  lostEnds,
  overdueTasks,
  expiredRows,
  duplicateCalls,
  secondWaiters,
  withdrawals,
];
for (const cases of suite) await cases(permitLine);
