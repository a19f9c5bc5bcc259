import { type Change, change, type Mutation } from './mutation.ts';

const CALLERS = 'test/queue/callers.test.ts';
const LINE = 'test/leases/line.test.ts';
const CROWD = 'test/queue/crowd.test.ts';
const HAZARDS = 'test/queue/hazards.test.ts';
const QUICK = 'test/queue/quick-release.test.ts';
const PACE = 'test/queue/pace.test.ts';
const REQUESTS = 'test/queue/requests.test.ts';

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
    ...['after the transfer, and another has the lease before the grant ends', 'test/queue/bounds.test.ts'],
  ),
  shown(
    'the task of a grant that a call gave back is told nothing',
    [change("if (isOwn && (ending === 'executionEnded'", "if (isOwn && (ending !== 'broken'")],
    ...['is over for the task, which learns that', LINE],
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
        'const ttlMs = isUnclaimed ? askedMs : (record.ttlMs ?? askedMs);',
        'const ttlMs = record.ttlMs ?? askedMs;',
      ),
    ],
    ...['is that of the task which comes, whole', REQUESTS],
  ),
  shown(
    'a lease that has come free takes no mark',
    [
      {
        search: "all(any(isHeld, { expression: 'attribute_exists(fence)' }), not(isOf(request)))",
        replace: 'all(isHeld, not(isOf(request)))',
      },
    ],
    ...['is not passed by a plain caller that comes between its mark and its hand-off', CROWD],
  ),
  shown(
    'the mark of a free lease is known by its count alone',
    [
      {
        search: 'if (isLeased(record)) return isSame;',
        replace: 'if (record) return isSame;',
      },
    ],
    ...['nor by the mark that began again while the lease was free', HAZARDS],
  ),
  shown(
    'a crowd that finds the lease free waits as if its turns were long',
    [change(': betweenMs(sight);\n  return eachMs', ': now - acquiredAt;\n  return eachMs')],
    ...['where the lease is free, and about to be handed on', PACE],
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
    'that comes when another has the lease is none: the call is told so',
    CALLERS,
  ),
  shown(
    'nobody looks at the clock after a claim',
    [change('isWorthIt(grant, clock.now())', 'isWorthIt(grant, 0)')],
    'that is answered late is renewed, so that the caller gets more than half of its ttl',
  ),
  shown(
    'a claim does not know its own first try',
    [change('condition: isStillHeld(record), values, version }', 'condition: isStillHeld(record), values }')],
    'whose answer is lost is known by its version',
  ),
  shown(
    'a claim does not look whether it was withdrawn',
    [change('condition: all(isCaller, isNotCancelled) }', 'condition: isCaller }')],
    'a claim finds a withdrawal that comes at the same time, and hands off the lock (fault: none)',
  ),
  shown(
    'a caller in line is granted its whole ttl before it has claimed it',
    [change('ttlSeconds: WINDOW_SECONDS, claimTtlSeconds', 'ttlSeconds, claimTtlSeconds')],
    'alone in line leaves no grant for its ttl: the next caller has the lock after the window',
  ),
  shown(
    'a plain caller overwrites a grant that was not claimed',
    [
      {
        search: 'all(isExpired(cut), isClaimed, isNotEndingFor',
        replace: 'all(isExpired(cut), isNotEndingFor',
      },
    ],
    'alone in line leaves no grant for its ttl: the next caller has the lock after the window',
  ),
  shown(
    'a grant that was not claimed in time keeps its place',
    [change("new Set(['lapsed', 'spent',", "new Set(['spent',")],
    'in line costs the next one the window, the margin, and a look',
  ),
  shown(
    'a caller that has left is granted the lease',
    [change("if (isCancelled || isOverdue(waiter, now)) return 'passed';", "if (isCancelled) return 'passed';")],
    'is no place for another: a crowd that has left costs the next one nothing',
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
    [change("if (!(await canNotifyTasks(dependencies))) return 'passed';", '')],
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
    'gains nothing by the ticket of another request, and leaves that in line',
  ),
  shown(
    'no message looks again in front of a task',
    [change('ticket);\n        if (line.taskWaits) await', 'ticket);\n        if (!oldest) await')],
    'in front of a task: a message has the line looked at again',
  ),
  shown(
    'a task that parks behind an unclaimed grant sends no message',
    [change('if (isFirst || record.claimTtlMs !== undefined)', 'if (isFirst)')],
    'with its grant unclaimed: a task that parks then sends the message',
  ),
  shown(
    'the holder before is one that never claimed',
    [{ search: 'claimTtlMs !== undefined || holder', replace: 'holder' }],
    'previous names who held before, and no caller that was granted the lease and died before it claimed that',
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
    'and the event of its end ends its execution: `previous` names it all the same to',
    'test/queue/undelivered.test.ts',
  ),
  shown(
    'the end of an execution remembers the request of a grant that is over and that nobody heard of',
    [change('|| endsAt <= dependencies.clock.now()) return true;', '|| endsAt <= 0) return true;')],
    'after the schedule told its task LeaseHeld, and its execution ended before the schedule ended the grant, a minute later',
    'test/queue/undelivered.test.ts',
  ),
  shown(
    'a withdrawal does not read the record',
    [
      change(
        'const grant = lock.own(record, asker);',
        'const grant = seen.size < 0 ? lock.own(record, asker) : undefined;',
      ),
    ],
    'ends a grant, claimed or not, and hands it on',
    CALLERS,
  ),
  shown(
    'the mark goes from a record that stays held without a new version',
    [change('if (!isLeased(record)) return updateLease(', 'if (record || !isLeased(record)) return updateLease(')],
    'does not clear the mark of a newcomer, by the mark of a record that stays held',
    HAZARDS,
  ),
  shown(
    'a record that was seen free is known by being free alone',
    [
      {
        search: 'isLeased(record) ? isStillHeld(record) : isStillFree(record);',
        replace: 'isLeased(record) ? isStillHeld(record) : all(isFree, any(isFree, isStillFree(record)));',
      },
    ],
    'does not follow a free record that another has held since',
    HAZARDS,
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
    'with the ticket of another proves nothing, and changes nothing',
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
    'a task that is overdue: it is told so, and the next one has the lease',
    QUICK,
  ),
  shown(
    'a quick release whose answer was lost is told as a lease that was taken',
    [{ search: "inLine === 'unanswered'", replace: "inLine === 'handedOn'" }],
    'whose answer is lost, and whose next holder has gone on since: not said to have been taken',
    QUICK,
  ),
  shown(
    'a quick release does not know its own first try',
    [change('{ key, version, ...update, values, condition }', '{ key, ...update, values, condition }')],
    'whose answer is lost knows its own transfer',
    QUICK,
  ),
  shown(
    'the average turn follows a single long one',
    [change('(Math.min(turnMs, 2 * paceMs) - paceMs) / 8', 'turnMs - paceMs')],
    'falls at once, and rises slowly',
    PACE,
  ),
  shown(
    'a crowd that came at once trusts the order of its marks',
    [change('millisecondsOf(served) > APART_MS', 'millisecondsOf(served) > -APART_MS')],
    'a crowd that came at once: by the names alone, because its marks have another order',
    PACE,
  ),
  shown(
    'a call that lost one place of its request gives back the lease of the other',
    [change('if (row === grant.ticket) await lock.giveUp(record);', 'await lock.giveUp(record);')],
    'and loses its own place right then: it leaves the lock to the other call',
  ),
  shown(
    'the row of a task counts as one that was withdrawn',
    [change('cancelled: !won && old?.task_token === undefined', 'cancelled: !won')],
    'that a call stands in line for too: the call ends no lease of the task, and shares it',
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
    'that a call stands in line for too: the lock stays with the call if the task is gone',
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
    'a withdrawal whose call comes in line, is granted the lease, and gives that up by the flag: it is withdrawn',
    'test/queue/landed.test.ts',
  ),
];
