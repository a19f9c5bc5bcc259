// biome-ignore-all lint/suspicious/noTemplateCurlyInString: source text of the product, searched and replaced
import { type Change, change, type Mutation } from './mutation.ts';

const PAST_LIMIT = 'nobody is granted a permit past its limit';

const TAKES_PLACE = `const { ticket, again } = await takePosition(dependencies, { ...joining, asked: lock.asked }, call);
  `;

const byHistory = (name: string, [promise, seed]: [promise: string, seed: number], ...changes: Change[]): Mutation => ({
  ...{ name, promise, changes, only: 'pools', seed },
});
const byTest = (name: string, [file, test]: [file: string, test: string], ...changes: Change[]): Mutation => ({
  ...{ name, changes, test: { file: `test/permits/${file}.test.ts`, name: test } },
});

/** Ways to break permits and their line: each condition and each hazard of docs/protocols/pools.md. */
export const POOLS: Mutation[] = [
  byTest(
    'a claim of a permit does not note that a call had the permit',
    ['line', 'a redriven execution receives LeaseLost for a call that received the lock from its holder, although'],
    change("        ...(isAnswered ? ['#h.r = :now'] : []),\n", ''),
  ),
  byTest(
    'an answer with the permit of a task does not note that a call had the permit',
    [
      'line',
      'a redriven execution receives LeaseLost for a lock that a call was answered with in place of the task, whose',
    ],
    change('v: text(version), r: integer(now)', 'v: text(version), u: integer(now)', 'shared/permits/lock.ts'),
  ),
  byTest(
    'a task that shares an unclaimed permit has its window alone',
    ['line', 'an unclaimed grant becomes a full grant of the task of its request'],
    change('isOfTask ? waiter.ttlSeconds * 1000 : undefined;', 'undefined;', 'shared/permits/deliver.ts'),
  ),
  byTest(
    'an unclaimed permit that a task takes over stays that of the call’s ticket',
    ['line', 'an unclaimed grant goes to the task of its request even if the task cannot be notified at once'],
    change('    k: text(ticket),\n', '', 'shared/permits/deliver.ts'),
  ),
  byHistory(
    'the weight in use is not in the condition of a permit',
    [PAST_LIMIT, 3],
    change("{ ':room': integer(room) }", "{ ':room': integer(room + 1e9) }"),
  ),
  byHistory(
    'the weight in use is compared by <> limit, as in the sample of AWS',
    [PAST_LIMIT, 3],
    change("'#used <= :room', { ':room': integer(room) }", "'#used <> :room', { ':room': integer(room + 1) }"),
  ),
  byTest(
    'a take-over does not name the versions of those who go',
    ['faults', 'a late take-over of a permit that was extended, released or broken in between looks again'],
    change(
      'expression: `#h${nth}.v = :v${nth}`',
      'expression: `(#h${nth}.v = :v${nth} OR attribute_exists(#h${nth}.v))`',
    ),
  ),
  byTest(
    'the take-over of a permit ignores the clock skew',
    [
      'permits',
      'a take-over gives an expired permit to the first caller once the margin has passed, and ends no more than are needed',
    ],
    change('expiresAt + clockSkewMs + 1', 'expiresAt + 1 + 0 * clockSkewMs'),
  ),
  byTest(
    'the line ends permits without the clock skew',
    ['line', 'the schedule takes over no lock before the margin is over'],
    change('const cut = clock.now() - clockSkewMs;', 'const cut = clock.now() - 0 * clockSkewMs;'),
  ),
  byTest(
    'a request that has a permit is granted another',
    ['faults', 'acquire: the SDK tries again, and the caller has one permit'],
    change('attribute_not_exists(#g${nth})', 'attribute_not_exists(#g${nth}.none)'),
  ),
  byTest(
    'a request that gave its permit back is granted another',
    ['faults', 'an acquire that arrives late, and whose permit was released in between, takes no other permit'],
    change('{ [`:m${nth}`]: text(name) }', "{ [`:m${nth}`]: text(name && 'nobody') }"),
  ),
  byTest(
    'a call that does not wait takes no notice of the mark',
    ['line', 'a call hands off the lock of a release that could not read the line'],
    change('conditions: [isUnmarked] }', 'conditions: [] }'),
  ),
  byTest(
    'one that fits passes the first in the line of a pool',
    ['callers', 'a heavy caller keeps the light callers behind it out'],
    change(
      '    if (used > permit.room || line.heads.length',
      '    if (used > permit.room) {\n      line.others = true;\n      continue;\n    }\n    if (used > permit.room || line.heads.length',
    ),
  ),
  byTest(
    'a take-over does not free the weight of those who go',
    [
      'permits',
      'a take-over gives an expired permit to the first caller once the margin has passed, and ends no more than are needed',
    ],
    change("':weight': integer(weight - freed)", "':weight': integer(weight)"),
  ),
  byTest(
    'a release does not lower the weight in use',
    ['permits', 'a release frees the weight, and answers a repeat as it did the first time'],
    change("'#used = #used - #h.w'", "'#used = #used'"),
  ),
  byTest(
    'a release does not prove its lease id',
    ['compat', 'a lease id with a guessed secret, or for another key, proves no grant'],
    change("expression: '#h.i = :id'", "expression: '(#h.i = :id OR attribute_exists(#h.i))'"),
  ),
  byTest(
    'an earlier heartbeat of a permit overwrites a later one',
    ['faults', 'a heartbeat from before another heartbeat shortens no permit'],
    change("'#h.b < :now'", "'#h.b <> :now'"),
  ),
  byTest(
    'a heartbeat with a ttl of its own shortens a permit',
    ['permits', 'a heartbeat extends a permit by its ttl or another, keeps its fence, and never shortens'],
    change("'#h.e < :expires'", "'#h.e <> :expires'"),
  ),
  byTest(
    'a heartbeat by a clock that is behind shortens a permit that was told again',
    [
      'park',
      'a heartbeat by a clock that is behind shortens no permit of which its task was notified again by that clock',
    ],
    change("':beat': integer(expiresAt - ttlMs)", "':beat': integer(now)"),
  ),
  byTest(
    'the mark of a pool counts from 1 again after it went',
    ['callers', 'the mark of a pool never has a value twice'],
    change("const NEXT = 'if_not_exists(#seq,", "const NEXT = 'if_not_exists(#waiters,"),
  ),
  byTest(
    'the mark of a pool is removed whatever its value',
    [
      'look-again',
      'the mark of a pool stays for a task that joins between the look at the line and the grant to the only waiter',
    ],
    change('conditions: [markUnchanged(line.seen)] }', 'conditions: [] }'),
    change('...(unmark ? [markUnchanged(unmark)] : [])', '...(unmark ? [hasUsed] : [])'),
  ),
  byTest(
    'the mark of a pool is removed after a look at the line from before its value',
    [
      'look-again',
      'the mark of a pool stays for a task that joins between the look at the line and the grant to the only waiter',
    ],
    change('return waiters?.N === this.#mark?.N;', 'return waiters?.N === this.#mark?.N || true;'),
  ),
  byTest(
    'a call takes its look at the line for whole after any write of its own',
    [
      'look-again',
      'the mark of a pool stays for a task that joins between the look at the line and the first of two writes that grant',
    ],
    change('Number(waiters?.N) === Number(this.#mark.N) + 1', 'Number(waiters?.N) !== Number(this.#mark.N)'),
  ),
  byTest(
    'rows are judged again after a standstill',
    ['advance', 'a lost write of the line after a pause of 251 ms has read the line'],
    change('now - this.#readAt > MAX_AGE_MS', 'now - this.#readAt < -MAX_AGE_MS'),
  ),
  byTest(
    'a call that has ended a permit does not look at the line again',
    [
      'look-again',
      'the line of a pool is looked at again if more permits have expired than one write ends, and the first in line needs the room of all',
    ],
    change('if (needed.length === 0 && line.behind &&', 'if (line.behind &&'),
  ),
  byTest(
    'a release gives no room to the line',
    [
      'park',
      'acquire with a task token parks if there is no permit, and releases serve as many tasks as fit, in their order',
    ],
    change('if (record.waiters === undefined && ticket === undefined) return;', 'if (record.key) return;'),
  ),
  byTest(
    'the repeat of a release whose first try died gives no room to the line',
    ['line', 'a hand-off follows a first try without an answer, if that is a release'],
    change("(won || (unanswered && reason === 'released'))", 'won'),
  ),
  byTest(
    'the mark of a pool comes before the ticket of a call',
    ['line', 'a caller whose ticket is written late is not passed by a later caller'],
    change(
      `${TAKES_PLACE}const marking = lock.mark(ticket, again ? 'again' : 'first');`,
      `const marking = lock.mark(joining.ticket ?? '', 'first');\n  await marking.catch(() => {});\n  ${TAKES_PLACE}`,
    ),
  ),
  {
    name: 'a task that is tried again takes the lease from the execution that has it',
    changes: [change('record.claimTtlMs === undefined && !isRedriven(record, waiter)', 'isRedriven(record, waiter)')],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a retried task leaves the grant to the execution that has it',
    },
  },
  byTest(
    'a task that is tried again takes the permit from the execution that has it',
    ['line', 'a retried task leaves the grant to the execution that has it'],
    change('entry.claimTtlMs !== undefined || isRedriven(entry, waiter)', 'entry.ttlMs > 0'),
  ),
  byTest(
    'a task that is gone ends a grant that a call may hold',
    ['line', 'a retried task that has already ended does not hand off the grant'],
    change("if (outcome === 'gone' && !repeated) await", "if (outcome === 'gone') await"),
  ),
  byTest(
    'a task whose refusal got no answer is said to wait no more',
    ['line', 'the answer says that the task waits if the request was released'],
    change(
      "return delivery === 'unanswered' ? 'waits' : 'notified';",
      "return delivery === 'gone' ? 'waits' : 'notified';",
    ),
  ),
  byTest(
    'a task whose grant got no answer is said to wait no more',
    ['line', 'the answer says that the task waits if the task was granted at once'],
    change("if (unnotified?.has(waiter.ticket)) return 'waits';", ''),
  ),
  byTest(
    'no message looks at the end of the holders of a pool',
    ['line', 'only the first task in line sends the message that looks again'],
    change('if (Number.isFinite(endsAt)) await', 'if (endsAt < 0) await'),
  ),
  byTest(
    'no message looks at the end of a permit that a task was granted in front of another task',
    ['line', 'a hand-off to a task sends the message that looks again when the grant of that task ends'],
    change('else if (behind) await', 'else if (behind && record.used < 0) await'),
  ),
  byTest(
    'a hand-off of a pool sends a message about permits whose tasks are gone',
    ['line', 'a hand-off to a task that is gone sends no message that looks again'],
    change('if (!taskWaits || undelivered.length === heads.length)', 'if (!taskWaits)'),
  ),
  byTest(
    'each task that parks for a permit sends a message',
    ['line', 'only the first task in line sends the message that looks again'],
    change('if (!this.isNext(record, ticket)) return;', 'if (record.nextTicket === undefined) return;'),
  ),
  byTest(
    'a hand-off of a pool sends a message only if a task is next',
    ['line', 'a hand-off sends the message that looks again after the grant window'],
    change(' || behind.some(isTask)', ''),
  ),
  byTest(
    'a release leaves its room to a release of a while ago, whose call may have exited',
    ['crowd', 'a release hands off its room if the release before it may have exited'],
    change('isRecent(record.freedBefore, now) &&', '', 'shared/permits/freed.ts'),
  ),
  byTest(
    'a release leaves its room to a release that has handed off',
    ['crowd', 'a release hands off its room if there was no room before it'],
    change('  record.usedBefore < record.lastLimit &&\n', '', 'shared/permits/freed.ts'),
  ),
  byTest(
    'a release leaves its room to another release though a task is next, which does not look',
    ['crowd', 'a release hands off its room if a task is next, because a task does not look by itself'],
    change(
      'nextTicket !== undefined && nextTickets?.startsWith(shortName(nextTicket)) ? nextTickets',
      'nextTicket !== undefined ? (nextTickets ?? shortName(nextTicket))',
      'shared/permits/pace.ts',
    ),
  ),
  byTest(
    'a first try hands off the room of a release that hands off itself',
    ['crowd', 'a call leaves the room of a release to that release, joins the line, and passes no waiter'],
    change('next !== undefined && !isHandedOff(record, clock.now())', 'next !== undefined'),
  ),
  byTest(
    'the next in line hands off the room of a release at once',
    ['crowd', 'the next in line leaves the room of a release to that release'],
    change('&& !this.#lock.isLeftToRelease?.(this.#record)', '', 'shared/line/wait.ts'),
  ),
  byTest(
    'a hand-off of a pool does not note how many have left the line',
    ['full-line', 'the hand-offs of a pool keep the number of waiters that have left'],
    change('isNews: true, out: 1 + granted }', 'isNews: true }'),
  ),
  byTest(
    'a pool whose line is empty is taken for one that all arrivals are in',
    ['full-line', 'the hand-offs of a pool keep the number of waiters that have left'],
    change("set: ['#out = if_not_exists(#seq, :zero)'],", "set: ['#out = :zero'],"),
  ),
  byTest(
    'a call that asks again for a permit counts as another arrival',
    ['full-line', 'the line of a pool does not count a call again if the call asks again'],
    change('fence: isAgain ? undefined : seenFence, isAgain };', 'fence: isAgain ? undefined : seenFence };'),
  ),
  byTest(
    'a task that parks for a permit does not look after its mark',
    ['line', 'a task receives a free lock at once, with what acquire would answer'],
    change('if (lock.freeAt(record) <= dependencies.clock.now()) {', 'if (lock.freeAt(record) === 0) {'),
  ),
  byTest(
    'a grant of the line that landed without an answer is taken for that of another call',
    ['line', 'the task is notified once'],
    change('return { ...written, won: written.landed };', 'return written;'),
  ),
  byTest(
    'a message to a task that got no answer is sent again by the SDK',
    ['line', 'the schedule deletes the ticket of a task that a message has reached without an answer'],
    { file: 'shared/aws/step-functions.ts', search: 'maxAttempts: 1,', replace: 'maxAttempts: 3,' },
    change('return () => tries++ > 0;', 'return () => tries++ > 2;'),
  ),
  byTest(
    'the schedule tells no task of a permit that it may not have heard of',
    ['line', 'the schedule notifies a task of its grant from ten seconds after'],
    change('if (read++ === MAX_LATE ||', 'if (read++ >= 0 ||'),
  ),
  byTest(
    'a grant whose answer was lost is told also where another call has told it since',
    ['line', 'the grant stays if the task has come again with another token'],
    change(
      'if (entry.version !== versions.get(permit.name)) return undefined;',
      'if (!versions.has(permit.name)) return undefined;',
    ),
  ),
  byTest(
    'the schedule does not put back the mark of a pool',
    ['line', 'the schedule puts back the mark that a third-party client removed'],
    change('if (record.waiters === undefined &&', 'if (record.waiters !== undefined &&', 'shared/permits/repair.ts'),
  ),
  byTest(
    'a call is refused for the permit that a duplicate of it received while it looked at the line',
    ['duplicates', 'a call that looks at the line receives the permit of a duplicate call'],
    change('if (!granted || !mayMeetAgain())', 'if (!granted || meetings > 0)'),
  ),
  byTest(
    'a call is refused for the permit that a duplicate of it claimed first',
    ['duplicates', 'a call before its claim receives the permit of a duplicate call'],
    change('clock.now()) && mayMeetAgain())', 'clock.now()) && meetings < 0)'),
    change('if (!granted || !mayMeetAgain())', 'if (!granted || meetings > 0)'),
  ),
  byTest(
    'a call that leaves the line is refused for the permit that a duplicate of it claimed first',
    ['duplicates', 'a call whose deadline has come receives the permit of a duplicate call'],
    change('++conflicts === maxConflicts', '++conflicts >= 1'),
  ),
  byTest(
    'a call behind a waiter that does not fit hands off at each look',
    ['one-line', 'a light call behind a heavy waiter reads the line no more than once a second'],
    change('if (!isFree || this.#isStillFruitless) return false;', 'if (!isFree) return false;'),
  ),
  byTest(
    'a call that races beside a line tries at each look',
    ['one-line', 'a call that races while a heavy waiter is next tries no more than once a second'],
    change('lock.isMarked(record) ? Math.max(at, triedAt + BESIDE_LINE_MS) : at', 'at'),
  ),
  byTest(
    'a repeated acquire prolongs the permit',
    ['line', 'a repeated acquire does not extend a grant that came from the line'],
    change("if (how === 'answer') return this.#answer(entry);", ''),
  ),
  byTest(
    'a call in line that is refused for another weight stays in line',
    ['duplicates', 'a call in line whose request receives a permit of another weight is refused'],
    change('if (error && ticket !== undefined)', 'if (error && !ticket)'),
  ),
  byTest(
    'a caller in line is granted its whole ttl before it claims its permit',
    ['line', 'a caller that exits in line delays the next one by the grant window'],
    change('{ ttlMs: WINDOW_MS, claimTtlMs: ttlMs }', '{ ttlMs, claimTtlMs: ttlMs }'),
  ),
  byTest(
    'the event of an end believes what Step Functions said before the record of a pool was read',
    ['line', 'an execution that is redriven before the pass reads the record'],
    change(
      'const end = plain.length > 0 ? await endOf(dependencies, reported, call) : undefined;',
      "const end = plain.length > 0 && execution === '' ? await endOf(dependencies, reported, call) : 'failed';",
      'shared/permits/execution-ended.ts',
    ),
  ),
  byTest(
    'an overdue task is refused by the record of the pool from before its ticket',
    ['line', 'the LeaseHeld of an overdue task names the current holder'],
    change(
      'const record = await readPool(dependencies, seen.key, call);',
      "const record = seen.key === '' ? await readPool(dependencies, seen.key, call) : seen;",
    ),
  ),
  byTest(
    'an overdue task is refused that another call has just granted a permit',
    ['line', 'a hand-off with an old record sends no message to an overdue task'],
    change('(isNew || isShared(entry, asked))', 'isShared(entry, asked)'),
  ),
  byTest(
    'a caller that did not claim its permit keeps its place',
    ['line', 'a caller that exits in line delays the next one by the grant window'],
    change(
      "if (gone) return gone.how === 'expired' || !isTask(waiter) ?",
      "if (gone) return gone.how === 'expired' && isTask(waiter) ?",
    ),
  ),
  byTest(
    'a permit that was taken over counts as one that a third-party client has overwritten',
    ['line', 'a task whose expired grant is taken over between its two marks'],
    change('!won && before === undefined && this', '!won && this'),
  ),
  byTest(
    'the second row of a request keeps the mark of a pool',
    ['places', 'a second waiter of a request keeps no mark on the pool'],
    change(
      `line.taskWaits ||= isTask(waiter);
      continue;`,
      'return { ...line, others: true, next: waiter.ticket, behind: permit, taskWaits: isTask(waiter) };',
    ),
  ),
  byTest(
    'a task is not notified of the permit that its request has by another row',
    ['line', 'the second task of a request that holds the lock is notified of that grant'],
    change("? 'shared' : 'other';", "? 'other' : 'other';"),
  ),
  byTest(
    'an overdue task is refused in the name of its own request',
    ['line', 'the second task of a request that holds the lock is notified of that grant'],
    change('(isNew || isShared(entry, asked))', 'isNew'),
  ),
  byTest(
    'no more expired holders make room than go in one write',
    ['permits', 'a take-over makes room by the end of'],
    change('if (!next || tries > MAX_TRIES)', 'if (!next || next.length > MOST_ENDED || tries > MAX_TRIES)'),
  ),
  byTest(
    'the fences of a pool begin at 0 where the record has gone',
    ['look-again', 'fences rise also if TTL has deleted the record of a pool'],
    change('return Math.max(now, seen + 1);', 'return Math.max(0 * now, seen + 1);'),
  ),
  byTest(
    'a pool with a long holder may be deleted by TTL',
    ['permits', 'a pool keeps its record 400 days past its last write, and its fences rise after that'],
    change('const TTL_SECONDS = 400 * 86_400;', 'const TTL_SECONDS = 86_400;', 'shared/permits/write.ts'),
  ),
  byTest(
    'a write that grants several permits does not count those before them',
    [
      'advance',
      'a write of the line that is lost to a caller that passed a removed mark grants no more than the limit has left',
    ],
    change('Math.min(least, room - before)', 'Math.min(least, room)'),
  ),
  {
    name: 'the repair takes a task for dead that Step Functions gives no answer about',
    changes: [
      {
        search: "if (delivery !== 'gone') return false;",
        replace: "if (delivery === 'delivered') return false;",
      },
    ],
    test: {
      file: 'test/permits/dead-head.test.ts',
      name: 'a task keeps its ticket if the answer about its heartbeat is refused',
    },
  },
  byTest(
    'the repair goes on asking about tasks after Step Functions has throttled',
    ['dead-head', 'a run asks about no more tasks once Step Functions has throttled a heartbeat'],
    change("if (delivery === 'throttled') questions.tasks = 0;", ''),
  ),
  {
    name: 'the repair never looks at the first in line that does not fit',
    changes: [
      {
        search: 'if (blocked && (await dropDeadTask(dependencies, { waiter: blocked, questions }, call))) continue;',
        replace: '',
      },
    ],
    test: {
      file: 'test/permits/dead-head.test.ts',
      name: 'a task whose execution goes on loses its ticket within two minutes after its token has expired',
    },
  },
  byTest(
    'a withdrawal that may have ended a permit says that there was none',
    [
      'withdraw',
      'a withdrawal is OutcomeUnknown if its write got no answer, and eight other permits have ended since, and not NotFound',
    ],
    change('if (asked.inDoubt && !asked.hadWaiter &&', 'if (asked.inDoubt && asked.hadWaiter &&'),
  ),
  byTest(
    'the end of an execution forgets the requests of its permits',
    ['line', 'a redriven execution receives LeaseLost for a call that received the lock from its holder'],
    change("how === 'executionEnded' ? [entry.name] : []", "how === 'executionEnded' ? [] : []"),
  ),
  byTest(
    'the end of an execution remembers the request of a permit that its task may never have heard of',
    ['line', 'a redriven execution may ask again if no task may have been notified of its grant'],
    change('return row ? isTask(row) : tickets.includes(ticket);', 'return row ? false : tickets.includes(ticket);'),
  ),
  {
    name: 'a cancellation leaves those behind the waiter to the schedule',
    changes: [change('  await lock.handOffToLine(record);\n  return', '  return')],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a free lock goes to the task behind a task that an operator cancels',
    },
  },
  {
    name: 'a withdrawal leaves those behind the call in line for a lease to the schedule',
    changes: [change('if (asked.waiter) await lock.handOffToLine(record);', '')],
    test: { file: 'test/leases/line.test.ts', name: 'a free lock goes to the task behind a call that withdraws' },
  },
  {
    name: 'the former holder of a broken lease is told that it was taken',
    changes: [change("if (record.brokenLease === leaseId) return 'broken';", '')],
    test: {
      file: 'test/leases/break.test.ts',
      name: 'a break is reported to its holder also if a waiter came after a break that ended the lease',
    },
  },
];
