import { type Change, change, type Mutation } from './mutation.ts';

const CALLERS = 'test/leases/callers.test.ts';
const LINE = 'test/leases/line.test.ts';
const CROWD = 'test/leases/crowd.test.ts';
const PAUSED = 'test/leases/paused-hand-offs.test.ts';
const QUICK = 'test/leases/quick-release.test.ts';
const PACE = 'test/leases/pace.test.ts';
const REQUESTS = 'test/leases/duplicate-calls.test.ts';

const shown = (name: string, changes: Change[], ...[test, file = LINE]: [test: string, file?: string]): Mutation => ({
  name,
  changes,
  test: { file, name: test },
});

/** Ways to break the line of callers and tasks: each condition of docs/protocols/queue.md that concerns callers. */
export const QUEUE_LINE: Mutation[] = [
  shown(
    'a hand-off that took its grant back too late has moved nothing',
    [change("const end = undelivered ? 'granted' : 'overtaken';", "const end = 'overtaken';")],
    ...[
      'a release has taken effect if another caller has the lease before the grant of the transfer ends',
      'test/leases/bounds.test.ts',
    ],
  ),
  shown(
    'the task of a grant that a call gave back is told nothing',
    [change("if (isOwn && (ending === 'executionEnded'", "if (isOwn && (ending !== 'broken'")],
    ...['a task receives LeaseLost if a duplicate call releases the grant', LINE],
  ),
  shown(
    'a plain call is refused a free lease whose line another call has emptied',
    [change("end === 'empty' || (!isLeased(after) && after.waiters === undefined)", "end === 'empty'")],
    'a plain call takes a lock whose expired holder releases it at that moment',
  ),
  shown(
    'a task whose expired grant was taken over waits without a mark',
    [change('if (isTakenOver) continue;', 'if (isTakenOver && record === undefined) continue;')],
    'a task whose expired grant is taken over between its two marks',
  ),
  shown(
    'a task that shares an unclaimed grant has its window alone',
    [
      change(
        'record.claimTtlMs === undefined && !isRedriven(record, waiter)',
        'record.ttlMs !== undefined && !isRedriven(record, waiter)',
      ),
    ],
    ...['an unclaimed grant becomes a full grant of the task of its request', LINE],
  ),
  shown(
    'a lease that has come free takes no mark',
    [
      {
        search: "all(any(isHeld, { expression: 'attribute_exists(fence)' }), not(isOf(request)))",
        replace: 'all(isHeld, not(isOf(request)))',
      },
    ],
    ...['a call that joins is not passed by a plain caller that comes between its mark and its hand-off', CROWD],
  ),
  shown(
    'the mark of a free lease is known by its count alone',
    [
      {
        search: 'if (isLeased(record)) return isSame;',
        replace: 'if (record) return isSame;',
      },
    ],
    ...['a paused hand-off does not remove the mark of a newcomer', PAUSED],
  ),
  shown(
    'a crowd that finds the lease free waits as if its turns were long',
    [change(': betweenMs(sight);\n  return eachMs', ': now - acquiredAt;\n  return eachMs')],
    ...[
      'a caller looks again by the arrivals before it, each as a hand-off takes, if the lease is free and about to be handed off',
      PACE,
    ],
  ),
  shown(
    'a claim does not name the version that it saw',
    [
      change('condition: isStillHeld(record), values, version }', 'condition: isHeld, values, version }'),
      change(
        'import { grantUnchanged, isStillHeld, isUnmarked, lineUnchanged } from',
        'import { grantUnchanged, isHeld, isStillHeld, isUnmarked, lineUnchanged } from',
      ),
    ],
    'a call whose claim comes after another has the lease receives LeaseHeld',
    CALLERS,
  ),
  shown(
    'nobody looks at the clock after a claim',
    [change('isWorthIt(grant, clock.now())', 'isWorthIt(grant, 0)')],
    'a claim that is answered late is renewed',
  ),
  shown(
    'a claim does not know its own first try',
    [change('condition: isStillHeld(record), values, version }', 'condition: isStillHeld(record), values }')],
    'a claim whose answer is lost is known by its version',
  ),
  shown(
    'a claim does not look whether it was withdrawn',
    [change('condition: all(isCaller, isNotCancelled) }', 'condition: isCaller }')],
    'a claim finds a withdrawal that comes at the same time, and hands off the lock (fault: none)',
  ),
  shown(
    'a caller in line is granted its whole ttl before it has claimed it',
    [change('ttlSeconds: WINDOW_SECONDS, claimTtlSeconds', 'ttlSeconds, claimTtlSeconds')],
    'a caller that exits alone in line keeps the lock for the grant window',
  ),
  shown(
    'a plain caller overwrites a grant that was not claimed',
    [
      {
        search: 'all(isExpired(cut), isClaimed, isNotEndingFor',
        replace: 'all(isExpired(cut), isNotEndingFor',
      },
    ],
    'a caller that exits alone in line keeps the lock for the grant window',
  ),
  shown(
    'a grant that was not claimed in time keeps its place',
    [change("new Set(['lapsed', 'spent',", "new Set(['spent',")],
    'a caller that exits in line delays the next one by the grant window',
  ),
  shown(
    'a caller that has left is granted the lease',
    [change("if (isCancelled || isOverdue(waiter, now)) return 'passed';", "if (isCancelled) return 'passed';")],
    'a crowd that has left does not delay the next caller',
  ),
  shown(
    'an overdue task that cannot be notified keeps the mark of a free lease',
    [change("if (outcome === 'unanswered') return 'passed';", "if (outcome === 'unanswered') return 'undecided';")],
    ...['an overdue task that cannot be notified does not keep a plain caller from the free lock', LINE],
  ),
  shown(
    'the schedule puts a mark back for an overdue task',
    [change('!isOverdue(waiter, now) && !isGranted(waiter)', '!isGranted(waiter)')],
    ...['the schedule puts no mark back for an overdue task that cannot be notified', LINE],
  ),
  shown(
    'an overdue task is refused in the name of its own request, which has the lease',
    [change('isRepeatable(record, waiter, now) &&', 'isRepeatable(record, waiter, now) && waiter.deadline > now &&')],
    'the second task of a request that holds the lock is notified of that grant',
  ),
  shown(
    'a process without a client of Step Functions fails at an overdue task',
    [change("if (!(await canNotify(dependencies, waiter))) return 'passed';", '')],
    ...['an overdue task does not keep the lock from a caller whose process has no client', LINE],
  ),
  shown(
    'a request that gave its lease back is granted another one by the line',
    [
      change(
        '(isOwnOf(record, waiter) && !FORGOTTEN.has(ending))',
        '(isOwnOf(record, waiter) && FORGOTTEN.size === 0)',
      ),
    ],
    'a request that released its grant receives no second one from the schedule',
  ),
  shown(
    'a call that asks again takes a new place',
    [change('if (kept) return', 'if (false) return')],
    'a call that asks again keeps its position in a line above the quota',
  ),
  shown(
    'a ticket is kept for any request that names it',
    [change('all(isOf(asker), isCaller)', 'isCaller')],
    'a call cannot use the ticket of another request, which stays in line',
  ),
  shown(
    'no message looks again in front of a task',
    [change('ticket);\n        if (line.taskWaits) await', 'ticket);\n        if (!oldest) await')],
    'the message that looks again serves the task behind a caller that exited',
  ),
  shown(
    'a task that parks behind an unclaimed grant sends no message',
    [change('if (isFirst || record.claimTtlMs !== undefined)', 'if (isFirst)')],
    'a task that parks behind an unclaimed grant sends the message that looks again',
  ),
  shown(
    'the holder before is one that never claimed',
    [{ search: 'claimTtlMs !== undefined || holder', replace: 'holder' }],
    '`previous` names the holder before, and no caller that exited before it claimed its grant',
    CALLERS,
  ),
  shown(
    'the holder before is never a task whose execution ended before its ticket was deleted',
    [
      change(
        "? 'perhapsUnnotified'\n      : 'executionEnded'",
        "? 'undelivered' : 'executionEnded'",
        'shared/leases/execution-ended.ts',
      ),
    ],
    'a function that stopped after it notified the task, and before it deleted the ticket: the event of its end ends its execution, and `previous` names the task to',
    'test/leases/undelivered.test.ts',
  ),
  shown(
    'the end of an execution remembers the request of a grant that is over and that nobody heard of',
    [change('|| endsAt <= dependencies.clock.now()) return true;', '|| endsAt <= 0) return true;')],
    'a request may ask again after the schedule sent its task LeaseHeld, and the execution ended before the schedule ended the grant, a minute later',
    'test/leases/undelivered.test.ts',
  ),
  shown(
    'a withdrawal does not read the record',
    [
      change(
        'const grant = lock.own(record, asked);',
        'const grant = asked.seen.size < 0 ? lock.own(record, asked) : undefined;',
      ),
    ],
    'a withdrawal flags a waiter once, ends its unclaimed grant',
    CALLERS,
  ),
  shown(
    'the mark goes from a record that stays held without a new version',
    [change('if (!isLeased(record)) return updateLease(', 'if (record || !isLeased(record)) return updateLease(')],
    'a paused release does not remove the mark of a newcomer',
    PAUSED,
  ),
  shown(
    'a record that was seen free is known by being free alone',
    [
      {
        search: 'isLeased(record) ? isStillHeld(record) : isStillFree(record);',
        replace: 'isLeased(record) ? isStillHeld(record) : all(isFree, any(isFree, isStillFree(record)));',
      },
    ],
    'a paused task does not follow a free record that another has held since',
    PAUSED,
  ),
  shown(
    'a quick release does not prove its lease id',
    [
      change(
        'all(hasLeaseId(leaseId), isHeldByAnother(ticket), hasNoEndMark, isUsable)',
        'all(any(isHeldByAnother(ticket), hasLeaseId(leaseId)), isUsable)',
      ),
      change('import { all, type Condition }', 'import { all, any, type Condition }', 'shared/leases/transfer.ts'),
    ],
    'a made-up lease id with the ticket of another waiter proves no grant, and changes no record',
    QUICK,
  ),
  shown(
    'a quick release grants the lease to the very request that gives it back',
    [
      change(
        'all(hasLeaseId(leaseId), isHeldByAnother(ticket), hasNoEndMark, isUsable)',
        'all(hasLeaseId(leaseId), any(isHeldByAnother(ticket), hasLeaseId(leaseId)), isUsable)',
      ),
      change('import { all, type Condition }', 'import { all, any, type Condition }', 'shared/leases/transfer.ts'),
    ],
    'a second ticket of the request whose lease ends: a request has one grant',
    QUICK,
  ),
  shown(
    'a quick release puts a lower fence on the key',
    [
      change(
        "'attribute_exists(holder) AND fence < :fence AND",
        "'attribute_exists(holder) AND attribute_exists(fence) AND",
      ),
    ],
    'a fence that would not rise',
    QUICK,
  ),
  shown(
    'a quick release counts on from any mark',
    [
      change(
        'AND waiters BETWEEN :least AND :most ',
        'AND (attribute_exists(waiters) OR waiters BETWEEN :least AND :most) ',
      ),
    ],
    'a record in which another client has changed waiters to',
    QUICK,
  ),
  shown(
    'a quick release passes over its own ticket',
    [change('if (waiter.ticket === own || (isTask', 'if ((waiter.waiter === own && read < 0) || (isTask')],
    'a ticket that is still there: its task is not granted the lease a second time',
    QUICK,
  ),
  shown(
    'a quick release grants the lease to a task that is overdue',
    [
      change(
        '(isTask(waiter) && isOverdue(waiter, clock.now()))) return undefined',
        '(isTask(waiter) && isOverdue(waiter, 0))) return undefined',
      ),
    ],
    'the plain release ends an overdue task with LeaseHeld, and the next waiter has the lease',
    QUICK,
  ),
  shown(
    'a quick release whose answer was lost is told as a lease that was taken',
    [{ search: "inLine === 'unanswered'", replace: "inLine === 'handedOn'" }],
    'a quick release whose answer is lost is not reported as taken if its next holder has gone on since',
    QUICK,
  ),
  shown(
    'a quick release does not know its own first try',
    [change('{ key, version, ...update, values, condition }', '{ key, ...update, values, condition }')],
    'a quick release whose answer is lost recognises its own transfer',
    QUICK,
  ),
  shown(
    'the average turn follows a single long one',
    [change('(Math.min(turnMs, 2 * paceMs) - paceMs) / 8', 'turnMs - paceMs')],
    'the average hold falls at once, and rises slowly',
    PACE,
  ),
  shown(
    'a crowd that came at once trusts the order of its marks',
    [change('millisecondsOf(before) > APART_MS', 'millisecondsOf(before) > -APART_MS')],
    'a crowd that came at once: by the names alone, because its marks have another order',
    PACE,
  ),
  shown(
    'a call that lost one place of its request gives back the lease of the other',
    [change('if (row === grant.ticket) await lock.giveUp(record);', 'await lock.giveUp(record);')],
    'a call that is cancelled while it claims the grant of another waiter',
  ),
  shown(
    'the row of a task counts as one that was withdrawn',
    [change('cancelled: !won && (old?.task_token ?? old?.callback_id) === undefined', 'cancelled: !won')],
    'a call shares the grant of the task, which the schedule notifies',
    REQUESTS,
  ),
  shown(
    'a call shares the lease of a task under the version of the call that notifies it',
    [
      change(
        "if (how === 'answer' && grant.expiresAt <= clock.now()) return undefined;",
        "if (how === 'answer') return grant.expiresAt <= clock.now() ? undefined : { record: current, grant, repeated: true, previous };",
      ),
    ],
    'the lock stays with the call if the task of the request is gone',
    LINE,
  ),
  shown(
    'a withdrawal leaves a task waiting that was not told of its grant',
    [
      change(
        'if (!row || !isTask(row)) return false;',
        'if (!row || isTask(row)) return false;',
        'shared/line/withdrawal.ts',
      ),
    ],
    'a withdrawal of a task that was not notified of its grant ends the task',
  ),
  shown(
    'a withdrawal does not count the place of a call that came after its look at the line',
    [change('asker }, call)) return true;', 'asker }, call)) return false;')],
    'a withdrawal is done if its call joins, receives the lease',
    'test/leases/unanswered-hand-offs.test.ts',
  ),
];
