import { askingAgain } from '../line/asking-again.ts';
import { callers } from '../line/callers.ts';
import { expiredRows } from '../line/expired-rows.ts';
import { fullLines } from '../line/full.ts';
import { handOffs } from '../line/hand-offs.ts';
import { lateWrites } from '../line/late.ts';
import { looks } from '../line/looks.ts';
import { overdueTasks } from '../line/overdue.ts';
import { duplicateCalls } from '../line/requests.ts';
import { secondWaiters } from '../line/second-waiters.ts';
import { withdrawals } from '../line/withdrawals.ts';
import { permitLine } from '../line/world.ts';

const suite = [
  askingAgain,
  callers,
  fullLines,
  handOffs,
  lateWrites,
  looks,
  overdueTasks,
  expiredRows,
  duplicateCalls,
  secondWaiters,
  withdrawals,
];
for (const cases of suite) await cases(permitLine);
