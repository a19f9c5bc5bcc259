import { type Change, change, type Mutation } from './mutation.ts';

const LEASES = 'test/leases/line.test.ts';
const PERMITS = 'test/permits/line.test.ts';

const shown = (name: string, [file, test]: [file: string, test: string], change: Change): Mutation => ({
  name,
  changes: [change],
  test: { file, name: test },
});

/** Ways to break what follows the end of an execution (docs/protocols/executions.md). */
export const EXECUTIONS: Mutation[] = [
  shown(
    'a lease goes on for its grace after SUCCEEDED too',
    [LEASES, 'a grant whose execution is shown as SUCCEEDED'],
    change("if (work !== 'failed' || graceMs", "if (work === 'none' || graceMs"),
  ),
  shown(
    'an abnormal end frees a lease with a grace at once',
    [LEASES, 'a grant lasts for its grace after its execution ended with ABORTED'],
    change("if (work !== 'failed' || graceMs", "if (work === 'failed' || graceMs"),
  ),
  shown(
    'the grace lasts beyond the expiry of the lease',
    [LEASES, 'the grace ends no later than the grant itself'],
    change('return Math.min(expiry, now + graceMs);', 'return now + graceMs;'),
  ),
  shown(
    'the grace is written over a lease that an execution was answered with since',
    [LEASES, 'a grant stays with an execution that is redriven between the read and the write of the pass'],
    change(
      'const condition = all(isStillHeld(record), isOfExecution(execution));',
      'const condition = all(isOfExecution(execution), isOfExecution(execution));',
      'shared/leases/grace.ts',
    ),
  ),
  shown(
    'the grace is written over a permit that an execution was answered with since',
    [PERMITS, 'a grant stays with an execution that is redriven between the read and the write of the pass'],
    change(
      'condition: isStill(entry),',
      "condition: { ...isStill(entry), expression: '#h.v = :seen OR attribute_exists(#h.v)' },",
      'shared/permits/grace.ts',
    ),
  ),
  shown(
    'the next holder inherits the grace of the one before',
    [LEASES, 'a grant from the line has the grace of its own request'],
    change("'grace_ms', 'ended_execution', ", ''),
  ),
  shown(
    'the first pass judges what is from after the end of the execution',
    [LEASES, 'the first pass leaves grants and tickets from after the end'],
    change('again || stopDate === undefined ?', "again || execution !== '' ?"),
  ),
  shown(
    'the first pass leaves what is later than its start by a clock that is behind',
    ['test/leases/line.test.ts', 'the first pass of an end takes a grant of a faster clock'],
    change('Math.min(askedAt, stopDate) + dependencies', 'Math.min(askedAt, stopDate) + 0 * dependencies'),
  ),
  shown(
    'the end of an execution asks about it before it reads what the execution holds',
    [
      'test/permits/executions.test.ts',
      'an execution that has released its permits costs one read at either pass and no question',
    ],
    change('const askedAt = dependencies.clock.now();', 'await end();\n    const askedAt = dependencies.clock.now();'),
  ),
  shown(
    'a query that fails keeps from being freed what the other query has found',
    [
      'test/leases/executions.test.ts',
      'a query of the waiters that fails keeps no lease from being freed, and the pass reports the failure',
    ],
    change('      failed(error);\n      return [];', '      throw error;'),
  ),
  shown(
    'a run of the schedule asks about as many executions as hold wanted keys',
    [LEASES, 'a run that cannot ask about all keys says so'],
    change('const MOST_ASKED = 200;', 'const MOST_ASKED = 2000;'),
  ),
  shown(
    'the schedule frees the lease of an execution that is about to start',
    [LEASES, 'the lock stays with an execution that does not exist, and may be about to start'],
    change(
      'findEnd(dependencies, { execution }, call)',
      'findEnd(dependencies, { execution, orMissing: true }, call)',
      'shared/leases/holder-look.ts',
    ),
  ),
  shown(
    'the schedule takes a target for one that never started while its start is on the way',
    [LEASES, 'the lock stays while the start of its target may be on the way'],
    change('stoppedAt + SETTLED_MS <= askedAt', 'stoppedAt <= askedAt'),
  ),
];

const BOUND = 'shared/line/executions/bound-grant.ts';

/** Ways to break a grant that lasts as long as its execution (docs/protocols/bound.md): the rules of verification/models/bound. */
export const BOUND_GRANTS: Mutation[] = [
  shown(
    'a repeat of a bound lease writes nothing',
    [LEASES, 'a repeat of a bound grant always writes'],
    change('&& !isBound(record) && !request.bound', '', 'shared/leases/first-try.ts'),
  ),
  shown(
    'the first pass does not compare the end with the last answer of a bound lease',
    [LEASES, 'the first pass leaves an end close to the last answer to the second pass'],
    change(
      'isAfter(stoppedAt, grant, clockSkewMs) ?',
      'isAfter(Number.POSITIVE_INFINITY, grant, clockSkewMs) ?',
      BOUND,
    ),
  ),
  shown(
    'the clean-up ends a bound lease that was answered again since the report, if its execution has ended since',
    ['test/expiry/bound.test.ts', 'a bound grant is spared if its execution was redriven or the request repeated'],
    change('if (!isBound(record) || !isReported ||', 'if (!isBound(record) ||', 'shared/leases/bound-end.ts'),
  ),
  shown(
    'the report takes an execution about which AWS says nothing for one that goes on',
    ['test/expiry/bound.test.ts', 'a bound grant whose execution AWS says nothing about is reported as holderUnknown'],
    change("return () => 'unknown';", "return () => 'goesOn';", 'shared/locks/bound-holders.ts'),
  ),
  shown(
    'the report asks on although AWS throttles',
    ['test/expiry/bound.test.ts', 'a bound grant costs no question in the report once Step Functions throttles'],
    change('if (run.isSilent ||', 'if (', 'shared/expiry/report.ts'),
  ),
  shown(
    'a status is believed at once',
    [LEASES, 'the second pass leaves the grant to a redriven execution, also while its status still shows the end'],
    change('askedAt - answeredAt <= MAX_LAG_MS', 'askedAt - answeredAt < -MAX_LAG_MS', BOUND),
  ),
  shown(
    'the write that frees a bound lease names the execution alone',
    [LEASES, 'a redriven execution that is answered between the question and the write keeps the grant'],
    change(
      'const condition = all(isStillHeld(record), isOfExecution(record.execution), isUnmarked);',
      'const condition = all(isOfExecution(record.execution), isUnmarked);',
      'shared/leases/execution-ended.ts',
    ),
  ),
  shown(
    'no call looks at the execution of a bound lease',
    [LEASES, 'a caller whose look frees the grant of an ended execution receives the lock'],
    change('if (!won || !isLeased(current)) return NOTHING;', 'if (won || !isLeased(current)) return NOTHING;'),
  ),
  shown(
    'a call that is refused by a bound lease of the other kind does not look',
    ['test/locks/bound-kinds.test.ts', 'a caller whose look frees a bound lease of the other kind'],
    change('return isBound(record) && (await import(', 'return !isBound(record) && (await import('),
  ),
  shown(
    'a call that is refused by a bound permit of the other kind does not look',
    ['test/locks/bound-kinds.test.ts', 'a caller whose look frees a bound permit of the other kind'],
    change('if (!record.entries.some(isBoundPermit))', 'if (record.entries.some(isBoundPermit))'),
  ),
  shown(
    'the lease id of a bound permit changes in its grace',
    [PERMITS, 'a bound grant goes on for its grace after ABORTED'],
    change('}, entry.boundAt !== undefined),', '}, isBound(entry)),'),
  ),
  shown(
    'the second pass asks nothing about a bound lease',
    [LEASES, 'the first pass leaves an end close to the last answer to the second pass'],
    change('if (!settled && status !== undefined && stoppedAt', 'if (status !== undefined && stoppedAt', BOUND),
  ),
  shown(
    'the schedule sends the lease of a request to a second task that asks by other terms',
    [LEASES, 'the second task of a request, which asks by other terms, is refused the grant of the first task'],
    change('const error = otherTerms(record, waiter);', 'const error = undefined;', 'shared/leases/next.ts'),
  ),
  shown(
    'a hand-off sends the permit of a request to a second task that asks by other terms',
    [PERMITS, 'the second task of a request, which asks by other terms, is refused the grant of the first task'],
    change('const error = otherTerms(entry, waiter);', 'const error = undefined;', 'shared/permits/next.ts'),
  ),
  shown(
    'a bound lease has no grace',
    [LEASES, 'a bound grant goes on for its grace after ABORTED'],
    change("if (work !== 'failed' || graceMs", "if (work === 'failed' || graceMs"),
  ),
  shown(
    'a bound lease has a ttl of an hour',
    [LEASES, 'a bound grant says so, and stays with an execution that runs'],
    change('export const BOUND_SECONDS = 400 * 86_400;', 'export const BOUND_SECONDS = 3600;'),
  ),
  shown(
    'the schedule asks about a bound grant only if the key has its mark',
    [LEASES, 'the schedule frees the grant of a task that was not notified by its deadline'],
    change('return isBound || (isMarked && acquiredAt', 'return isMarked && (isBound || acquiredAt'),
  ),
  shown(
    'a process that cannot ask notes a look at a lease',
    [LEASES, 'a process that cannot ask leaves the look to the next caller'],
    change('if (!(await canAsk(dependencies, execution))) return NOTHING;', ''),
  ),
  shown(
    'a process that cannot ask notes a look at a pool',
    [PERMITS, 'a process that cannot ask leaves the look to the next caller'],
    change('if (await canAsk(dependencies, turn.execution)) asked.push(turn);', 'asked.push(turn);'),
  ),
  shown(
    'a call in line waits for its look',
    [LEASES, 'the first in line receives a grant in time, though the answer takes six seconds'],
    change(
      '    this.#askAboutHolders();\n    this.#checkedAt',
      '    await this.#lock.lookAtHolders?.(this.#record, true);\n    this.#checkedAt',
    ),
  ),
  shown(
    'each look at a pool begins with the same executions',
    ['test/permits/holder-looks.test.ts', 'looks ask about each of many executions in turn'],
    change('return [...turns.filter(({ fence }) => fence > lookedTo), ', 'return [...turns, '),
  ),
  shown(
    'the schedule asks about the keys in the order in which it saw them',
    [LEASES, 'a run that cannot ask about all keys says so, and the next run begins with the others'],
    change('.toSorted(byLookedAt)', ''),
  ),
  shown(
    'a delayed acquire takes a lease that was released after it began',
    [LEASES, 'a first try does not take the lock that was released after its caller was refused'],
    change('isBelow(grant.fence), isInTime)', 'isBelow(grant.fence))'),
  ),
  shown(
    'a delayed acquire takes the room of a permit that was released after it began',
    [PERMITS, 'a first try does not take the lock that was released after its caller was refused'],
    change('...(line ? [] : [wasNotFreedAfter(', '...(line || !seen ? [] : [wasNotFreedAfter('),
  ),
];
