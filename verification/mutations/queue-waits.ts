import { type Change, change, type Mutation } from './mutation.ts';

const CALLERS = 'test/leases/callers.test.ts';
const LINE = 'test/leases/line.test.ts';
const WAITS = 'test/leases/waits-in-line.test.ts';
const QUICK = 'test/leases/quick-release.test.ts';
const PACE = 'test/leases/pace.test.ts';
const TAKE_OVER = 'test/leases/take-over.test.ts';
const REQUESTS = 'test/leases/duplicate-calls.test.ts';
const UNDELIVERED = 'test/leases/undelivered.test.ts';
const LANDED = 'test/leases/unanswered-hand-offs.test.ts';

const shown = (name: string, changes: Change[], ...[file, test]: [file: string, test: string]): Mutation => ({
  name,
  changes,
  test: { file, name: test },
});

/** Ways to break the order in line, and what a call does there: it looks, asks again, withdraws, and hands on by its lease id. */
export const QUEUE_WAITS: Mutation[] = [
  shown(
    'a later try that was in line before the grant of its request is not notified',
    [change("shared === undefined ? '' : ' OR request_id = :shared'", "shared ? '' : ''")],
    ...[
      'test/leases/line.test.ts',
      'a retried task is notified by the schedule if both tries were in line and the grant went to the older try, which has ended',
    ],
  ),
  shown(
    'a claim takes the ttl on record, which may be that of another caller',
    [
      change(
        'const { ttlSeconds, bound } = request;',
        'const { bound } = request;\n  const ttlSeconds = (record.claimTtlMs ?? 0) / 1000;',
      ),
    ],
    ...[
      'test/leases/compat.test.ts',
      'a grant on which version 0.1.0 left the ttl of the waiter before gives its request the ttl that the request asks for',
    ],
  ),
  shown(
    'a call that asks again is refused before it keeps its place, if its first try was slow',
    [change('!first.won && isLate && !isBack;', '!first.won && isLate;')],
    ...[LINE, 'a call that asks again keeps its position, though its first try takes longer'],
  ),
  {
    name: 'a quick release passes over the first in line',
    changes: [
      change(
        `const [oldest, next] = firstOf(waiting, clock.now() + clockSkewMs);
  const isFull`,
        `const [next, oldest = next] = firstOf(waiting, clock.now() + clockSkewMs);
  const isFull`,
      ),
    ],
    promise: 'nobody in line is overtaken',
    only: 'queue',
    seed: 7,
  },
  {
    name: 'tasks go before callers',
    changes: [
      change(
        'if (waiting.every((waiter) => !isTask(waiter))) return',
        'if (waiting.some(isTask)) return [waiting.find(isTask), waiting.find((one) => !isTask(one))];\n  if (waiting) return',
      ),
    ],
    promise: 'nobody in line is overtaken',
    only: 'queue',
    seed: 3,
  },
  shown(
    'a plain caller takes a lease past the callers in line',
    [
      {
        search: 'conditionFields(all(isUnmarked, canBeHad,',
        replace: 'conditionFields(all(any(isUnmarked, canBeHad), canBeHad,',
      },
    ],
    'test/leases/crowd.test.ts',
    'a call that joins is not passed by a plain caller that comes between its mark and its hand-off',
  ),
  shown(
    'a call takes the lease that it has taken over itself for one that another call of its request has claimed',
    [change('own.version === this.#ownVersion', "own.version === ''")],
    TAKE_OVER,
    'a call has a full grant by its transfer',
  ),
  shown(
    'a call looks again before it takes an expired lease over',
    [change('if (lock.skipsLook?.(this.#record, this.#ticket)) return;', 'if (!this.#ticket) return;')],
    TAKE_OVER,
    'a call has a full grant by its transfer',
  ),
  shown(
    'a quick release takes the mark along where nobody else was seen',
    [
      change(
        'replacing({ set, computed, values: counted })',
        "replacing({ set, computed, values: counted, removed: others ? [] : ['waiters'] })",
      ),
    ],
    QUICK,
    'a quick release keeps no attribute of the grant before',
  ),
  shown(
    'a quick release leaves its task to the schedule',
    [
      change(
        "if (!won) return unanswered ? 'unanswered' : undefined;\n  await",
        "if (!won) return unanswered ? 'unanswered' : undefined;\n  if (!line) await",
      ),
    ],
    QUICK,
    'a quick release looks at the line at once, and writes no release that is bound to lose',
  ),
  shown(
    'a quick release names its successor as the holder before',
    [change("prev_holder: '#holder'", "prev_holder: ':holder'")],
    QUICK,
    'a quick release looks at the line at once, and writes no release that is bound to lose',
  ),
  shown(
    'a quick release tells a wrong number of arrivals that are in line no more',
    [change("'waiters - :others'", "'waiters + :others'")],
    QUICK,
    'a quick release says how many of the arrivals have left the line',
  ),
  shown(
    'a call in line takes itself for one place further ahead',
    [change('index < 0 ? undefined : index + 1 }', 'index < 0 ? undefined : index }')],
    PACE,
    'the others: by the turns before them, a second and a half at most',
  ),
  shown(
    'a call far behind sleeps for longer than the window',
    [change('const MAX_OTHERS_MS = 1500;', 'const MAX_OTHERS_MS = 15_000;')],
    PACE,
    'the others: by the turns before them, a second and a half at most',
  ),
  shown(
    'the next in line sleeps past the end of the holder’s lease',
    [change('return toTakeoverMs > 0 ? Math.min(pause, toTakeoverMs) : pause;', 'return pause;')],
    LINE,
    'the next caller takes the lock over in the first moment after the margin',
  ),
  shown(
    'a withdrawal reaches the requests of others',
    [
      change(
        'if (isTask(row) || !isOwnOf(row, asker)) continue;',
        'if (isTask(row) || row.requestId !== asker.requestId) continue;',
      ),
      change('asker ? isWaiterOf(asker) : isThere', 'asker ? isThere : isThere'),
    ],
    LINE,
    'a withdrawal ends only requests of its own caller and holder',
  ),
  shown(
    'a withdrawal gives up where the grant is extended in that moment',
    [change("return outcome.unanswered ? 'inDoubt' : 'changed';", "return outcome.unanswered ? 'inDoubt' : 'ended';")],
    REQUESTS,
    'a withdrawal ends a grant that is extended in that moment',
  ),
  shown(
    'a withdrawal hands the lease to nobody',
    [change('all(isStillHeld(record), isUnmarked) }', 'isStillHeld(record) }')],
    CALLERS,
    'a withdrawal flags a waiter once, ends its unclaimed grant',
  ),
  shown(
    'a call that was withdrawn comes back by asking again',
    [
      change(
        'const isSameRequest = all(isWaiterOf(asker), isNotCancelled, ',
        'const isSameRequest = all(isWaiterOf(asker), ',
      ),
    ],
    LINE,
    'a call that has left the line receives LeaseLost when it asks again after its withdrawal',
  ),
  shown(
    'a call that asks again keeps its place for no longer than before',
    [change('keep_until = :keep, #ttl', 'keep_until = if_not_exists(keep_until, :keep), #ttl')],
    LINE,
    'a call that asks again keeps its position until five seconds after its new deadline',
  ),
  shown(
    'the row of a call that asks again goes by its old TTL',
    [change('keep_until = :keep, #ttl = :ttl', 'keep_until = :keep, #ttl = if_not_exists(#ttl, :ttl)')],
    LINE,
    'a call that asks again keeps its position until five seconds after its new deadline',
  ),
  shown(
    'a call that asks again counts as another arrival',
    [change("ticket, again: how === 'again' };", 'ticket };')],
    LINE,
    'a call that asks again is not counted as another arrival',
  ),
  shown(
    'a call that asks again and has the lease at once leaves its place behind',
    [change('if (ticket === undefined) return outcome;', 'if (ticket === undefined || ticket) return outcome;')],
    LINE,
    'a call that asks again leaves the line if it has the lock at once',
  ),
  shown(
    'a hand-off takes its own grant for that of another once its holder has gone on',
    [change('written.record.leaseId === leaseId &&', "written.record.leaseId === '' &&")],
    'test/leases/unanswered-hand-offs.test.ts',
    'a hand-off to a caller that has claimed its grant since: the lease was broken',
  ),
  shown(
    'a break whose hand-off may have landed answers Conflict',
    [
      {
        search: 'inDoubt || (!outcome.won && outcome.unanswered)',
        replace: '!outcome.won && outcome.unanswered',
      },
    ],
    'test/leases/unanswered-hand-offs.test.ts',
    'a hand-off that another holder has followed: it is unknown if the lease was broken',
  ),
  shown(
    'a grant that its task was not told of is remembered once the task was told LeaseHeld',
    [change("if (judgement === 'refused' && isOwn && isUnanswered(search)) expiredUnnotified = true;", '')],
    'test/leases/undelivered.test.ts',
    'a request may ask again after its task received, in place of the grant, that its deadline has passed',
  ),
  shown(
    'a quick release grants the lease to a caller that may be leaving in front of a task',
    [
      change(
        `const [oldest, next] = firstOf(waiting, clock.now() + clockSkewMs);
  const isFull`,
        `const [oldest, next] = firstOf(waiting, clock.now() + 0 * clockSkewMs);
  const isFull`,
      ),
    ],
    QUICK,
    'a quick release passes over a caller in front of a task that may be leaving, by a clock that is ahead',
  ),
  shown(
    'a quick release hands on whatever time is left',
    [
      change(
        'call.timeLeftMs() < TRANSFER_MS)',
        'call.timeLeftMs() < TRANSFER_MS - TRANSFER_MS)',
        'shared/leases/quick-release.ts',
      ),
    ],
    QUICK,
    'the plain release serves no waiter if the invocation is nearly over: the line grants the lease',
  ),
  shown(
    'a withdrawal gives up where its hand-off is overtaken',
    [change("if (handed.end !== 'overtaken') return 'ended';", "if (handed.end !== 'nothing') return 'ended';")],
    REQUESTS,
    'a withdrawal hands off a lease that is extended in that moment',
  ),
  shown(
    'a withdrawal whose own write had no answer says that there was nothing to withdraw',
    [change('remembers: () => false,', 'remembers: () => true,')],
    'test/leases/unanswered-hand-offs.test.ts',
    'it is unknown if a lease was withdrawn that another caller has taken since',
  ),
  shown(
    'a withdrawal takes a lease that another gave back for its own',
    [change('&& current.leaseId === leaseId) return', "&& leaseId !== '') return")],
    REQUESTS,
    'a withdrawal has no effect if the grant is released, and another grant has come and gone since',
  ),
  shown(
    'a line is counted at every 32nd arrival of a quota alone',
    [change('if (!seemsFull && !isSample) return false;', 'if (!isSample) return false;')],
    LINE,
    'a full line refuses every further arrival',
  ),
  shown(
    'a line is counted by the hint of the record alone',
    [change('const isSample = arrivals > waitersPerKey &&', 'const isSample = arrivals < 0 &&')],
    LINE,
    'one arrival in four corrects the record, and is refused, if the record says that more waiters have left',
  ),
  shown(
    'a call that asks again is put out of a full line',
    [change('if (won && !again)', 'if (won)')],
    LINE,
    'a call that asks again keeps its position in a line above the quota',
  ),
  shown(
    'a line that seems full is counted again and again',
    [change('isFull !== seemsFull)', 'isFull && !seemsFull)')],
    LINE,
    'callers and tasks count a line only once if most arrivals have left',
  ),
  shown(
    'a late try of a ticket writes it again',
    [change("'attribute_not_exists(ticket)' }", "'attribute_exists(ticket) OR attribute_not_exists(ticket)' }")],
    LINE,
    'a first try that arrives after a withdrawal does not undo the withdrawal',
  ),
  shown(
    'a call whose ticket is gone joins again',
    [
      change(
        'this.#isGone = true;',
        'this.joined(await join(this.#dependencies, { request: this.#request, deadline: this.#deadline }, this.#call));',
      ),
    ],
    CALLERS,
    'a call whose ticket is gone does not join again',
  ),
  shown(
    'a call that was cancelled does not look at the record',
    [change('if (this.#isDecided) return true;', 'if (!isCancelled && this.#isDecided) return true;')],
    LINE,
    'a call that is cancelled before its claim hands the lock off at once',
  ),
  shown(
    'a task that took LeaseHeld is named as the holder before',
    [change("endedBefore(from, expiredUnnotified ? 'undelivered' : how,", 'endedBefore(from, how,')],
    UNDELIVERED,
    'a task that took LeaseHeld in place of a grant that had expired never held: the next in line receives the holder before it',
  ),
  shown(
    'a hand-off that begins again forgets that the task was never told',
    [change('expiredUnnotified ||= line.expiredUnnotified;', 'expiredUnnotified = line.expiredUnnotified;')],
    UNDELIVERED,
    'a task that took LeaseHeld in place of an expired grant never held, also if a caller joins during the hand-off',
  ),
  shown(
    'a call of the request that was answered with the grant of its task does not count',
    [
      change(
        "ending === 'expired' && record.answeredAt === undefined;",
        "ending === 'expired' && record.key !== undefined;",
      ),
    ],
    UNDELIVERED,
    'a task that took LeaseHeld may stand beside a call of its request that was answered with the grant: that call is named',
  ),
  shown(
    'a call leaves a free lease to those who stay',
    [
      change(
        'if (hasHandedOff || !lock.mayServe(record)) break;',
        'if (!hasHandedOff || !lock.mayServe(record)) break;',
      ),
    ],
    LINE,
    'a call hands off a free lock before it leaves',
  ),
  shown(
    'a call in line believes an old look',
    [
      change(
        'if (!isGrant(own) || (!written.won',
        "if (!isGrant(own) && how === 'answer') return { standing, grant, repeated: true, previous };\n    if (!isGrant(own) || (!written.won",
      ),
    ],
    REQUESTS,
    'a call receives no grant of the next holder if its look shows an old record',
  ),
  shown(
    'a claim that is over by the time it is told is left to itself',
    [
      change(
        'if (!full.repeated && grant.expiresAt <= dependencies.clock.now()) {',
        'if (full.repeated && !full.repeated) {',
      ),
    ],
    LINE,
    'a claim gives the whole ttl from then on if the deletion of its ticket outlasts the grant',
  ),
  shown(
    'a call that leaves goes by what it saw before its claim was lost',
    [change('      record = await lock.read();\n    }', '    }')],
    REQUESTS,
    'a call that leaves while the lease is transferred names the next holder',
  ),
  shown(
    'a call that leaves takes the end of its own grant for the lease of another',
    [change("if (typeof how === 'string') return", "if (typeof how === 'string' && call.timeLeftMs() < 0) return")],
    WAITS,
    'a call receives LeaseLost if its grant is broken right before its claim, 1000 ms long',
  ),
  shown(
    'a call that leaves does not judge what its hand-off shows',
    [change('record = (await lock.handOff(record)).record;', 'await lock.handOff(record);')],
    LINE,
    'a call has the lock that its own hand-off grants to an older waiter of its request',
  ),
  shown(
    'a call that has lost its grant leaves a free lease to those who stay',
    [change('if (lock.mayServe(record)) await', 'if (call.timeLeftMs() < 0) await')],
    LINE,
    'a call hands off the lock that its request has just released',
  ),
  shown(
    'a call whose grant a withdrawal has ended goes by its look from before',
    [
      change(
        'const isWithdrawn = await isCancelled(dependencies, { key: lock.asked.key, ticket }, call);',
        'const isWithdrawn = false;',
      ),
    ],
    WAITS,
    'a call that leaves receives LeaseLost, and leaves no row, if its grant is withdrawn',
  ),
  shown(
    'the end of a grant with an empty line forgets a try without an answer',
    [change('return { won, record, unanswered: outcome.unanswered };', 'return { won, record };')],
    LANDED,
    'it is unknown if a lease was released that another has taken since',
  ),
  shown(
    'the end of an execution forgets the request of a call that had the grant',
    [change('ticket === undefined || answeredAt !== undefined', 'ticket === undefined')],
    LINE,
    'a redriven execution receives LeaseLost for a lock that a call was answered with in place of the task, whose row is there',
  ),
  shown(
    'a claim does not note that a call had the grant',
    [change('answered_at = :now, heartbeat_at', 'heartbeat_at')],
    LINE,
    'a redriven execution receives LeaseLost for a call that received the lock from its holder, although the grant has expired',
  ),
  shown(
    'a call that hands the lease to itself does not note that it had the grant',
    [change('    ...answered,\n', '')],
    LINE,
    'a redriven execution receives LeaseLost for a call that took the lock over from an expired holder, although the grant has expired',
  ),
];
