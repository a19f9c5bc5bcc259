import { askingAgain } from '../line/asking-again.ts';
import { breaks } from '../line/breaks.ts';
import { callers } from '../line/callers.ts';
import { fullLines } from '../line/full.ts';
import { handOffs } from '../line/hand-offs.ts';
import { lateWrites } from '../line/late.ts';
import { looks } from '../line/looks.ts';
import { meetings } from '../line/meetings.ts';
import { lateNotices } from '../line/notices.ts';
import { overdueTasks } from '../line/overdue.ts';
import { parks } from '../line/parks.ts';
import { piles } from '../line/pile.ts';
import { duplicateCalls } from '../line/requests.ts';
import { secondWaiters } from '../line/second-waiters.ts';
import { retriedTasks } from '../line/tasks.ts';
import { withdrawals } from '../line/withdrawals.ts';
import { leaseLine } from '../line/world.ts';

const suite = [
  askingAgain,
  breaks,
  callers,
  fullLines,
  handOffs,
  lateWrites,
  looks,
  meetings,
  lateNotices,
  overdueTasks,
  parks,
  piles,
  duplicateCalls,
  secondWaiters,
  retriedTasks,
  withdrawals,
];
for (const cases of suite) await cases(leaseLine);
