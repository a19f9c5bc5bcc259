import { change, type Mutation } from './mutation.ts';

const ONE_RESULT = 'a slot has one result, and every caller is told that result';
const DONE_ONCE = 'no caller begins a slot that is done, or an earlier slot';
const NO_ZOMBIE = 'no worker stores a result after its run has ended';

/** The rules that the model of once can switch off (verification/models/once), and the margin of the clocks. */
export const ONCE: Mutation[] = [
  {
    name: 'a result is stored whoever holds the run',
    promise: NO_ZOMBIE,
    changes: [
      change(
        'all(hasLeaseId(leaseId), isHeld);\n\n/** The last row',
        'all(any(hasLeaseId(leaseId), isHeld), isHeld);\n\n/** The last row',
      ),
    ],
    only: 'once',
    seed: 1,
  },
  {
    name: 'the run of the next slot forgets which slot is done',
    promise: DONE_ONCE,
    changes: [change("'ended_execution', 'input_hash'],", "'ended_execution', 'input_hash', 'done_slot'],")],
    only: 'once',
    seed: 7,
  },
  {
    name: 'a result is stored after the run was released',
    promise: NO_ZOMBIE,
    changes: [
      change('all(hasLeaseId(leaseId), isHeld);\n\n/** The last row', 'hasLeaseId(leaseId);\n\n/** The last row'),
    ],
    only: 'once',
    seed: 3,
  },
  {
    name: 'a worker that meets a done slot is told that it has stored the result',
    promise: ONE_RESULT,
    changes: [
      change(
        'if (record?.done?.by === leaseId) return storedView',
        "if (record?.done && record.done.by !== '') return storedView",
      ),
    ],
    only: 'once',
    seed: 1,
  },
  {
    name: 'a slot is refused only if it equals the slot that is done',
    promise: DONE_ONCE,
    changes: [change('OR done_slot < :slot OR keep_until', 'OR done_slot <> :slot OR keep_until')],
    only: 'once',
    seed: 1,
  },
  {
    name: 'a caller receives the result of whatever slot is done',
    promise: ONE_RESULT,
    changes: [change('if (done && order === 0) {', 'if (done && order >= 0) {')],
    only: 'once',
    seed: 11,
  },
  {
    name: 'a worker that is gone is never replaced',
    promise: 'no key is stuck',
    changes: [
      change(
        'any(isFreeFor(grant), all(isExpired(cut), isNotEndingFor(grant)));\n  const keepUntil',
        'isFreeFor(grant);\n  const keepUntil',
      ),
    ],
    only: 'once',
    seed: 3,
  },
  {
    name: 'a run is taken over before the margin of the clocks is over',
    promise: 'one worker at a time works for a slot',
    changes: [change('mayBegin(grant, grant.acquiredAt - clockSkewMs)', 'mayBegin(grant, grant.acquiredAt)')],
    only: 'once',
    seed: 55,
  },
  {
    name: 'a period begins at its first instant, and an early fire counts for the period before',
    changes: [change('Math.floor((now + earlyMs(seconds)) / ms)', 'Math.floor(now / ms)')],
    test: { file: 'test/once/begin.test.ts', name: 'a schedule at the boundary of a period of 1d runs in each' },
  },
  {
    name: 'a refusal does not name the slot, and a wait over the end of a period works for the next',
    changes: [change('...(chosen && { retryWith: chosen })', '...{}')],
    test: { file: 'test/once/begin.test.ts', name: 'a call that waits over the end of a period works for the period' },
  },
  {
    name: 'a slot that sorts after every period supersedes each period without an error',
    changes: [change('if (request.isPeriod && isAfterAllPeriods(', 'if (!request.slot && isAfterAllPeriods(')],
    test: { file: 'test/once/begin.test.ts', name: 'a call with per fails with Conflict while a slot is done' },
  },
  {
    name: 'the result of finished work is thrown away by a loss that the work did not watch',
    changes: [change('if (lost && isWatching) throw lost;', 'if (lost) throw lost;')],
    test: { file: 'test/client/once.test.ts', name: 'holdfast.once stores work that finished after a loss' },
  },
];
