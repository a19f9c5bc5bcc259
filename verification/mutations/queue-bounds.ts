import type { Mutation } from './mutation.ts';

/** Ways to break what bounds a queue of dead tickets, and what is known of executions. Histories are too small to show them. */
export const QUEUE_BOUNDS: Mutation[] = [
  {
    name: 'a holder keeps the lease that it gives back where the line cannot be read',
    changes: [
      {
        search: 'if (error instanceof HoldfastError && GIVEN_BACK',
        replace: "if (search.record.key === '' && error instanceof HoldfastError && GIVEN_BACK",
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a release ends the lease although the line cannot be read, and keeps the mark: only the line grants it',
    },
  },
  {
    name: 'a grant that expired ends where the line cannot be read',
    changes: [
      {
        search: 'error instanceof HoldfastError && GIVEN_BACK.has(search.ending) && isLeased(search.record)',
        replace: 'error instanceof HoldfastError',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a call that would take over an expired lease fails if the line cannot be read, and changes no record',
    },
  },
  {
    name: 'a release in line fails with its first look',
    changes: [
      {
        search: ', call).catch(ifUnread);',
        replace: ', call);',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a line that cannot be read once does not keep the lease from its end by a holder that was in line itself',
    },
  },
  {
    name: 'a message that was throttled is left to the schedule',
    changes: [
      {
        search: 'if (pauseMs !== undefined && call',
        replace: 'if (pauseMs === 0 && call',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a message that Step Functions throttles is sent again, so a ticket without a task is passed over',
    },
  },
  {
    name: 'a message that was throttled is sent again without a look at the ttl',
    changes: [
      {
        search: 'if (isFresh && !isShort(grant, now)) {',
        replace: 'if (isFresh && (renewals === 0 || !isShort(grant, now))) {',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a message that Step Functions throttles arrives with the whole ttl, and not after the third pause',
    },
  },
  {
    name: 'no message looks at the end of a plain grant with a task behind it',
    changes: [
      {
        search: 'if (isFirst || record.claimTtlMs !== undefined)',
        replace: 'if (record.claimTtlMs !== undefined)',
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'only the first task in line sends the message' },
  },
  {
    name: 'each task that parks sends a message',
    changes: [
      {
        search: 'const isFirst = Number(record.waiters?.N) === 1;',
        replace: 'const isFirst = Number(record.waiters?.N) > 0;',
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'only the first task in line sends the message' },
  },
  {
    name: 'a message about a grant that has ended goes on with the one that stands',
    changes: [
      {
        search: 'record.fence !== fence && !canBeHad(record, dependencies)) return false;',
        replace: 'record.fence === undefined && !canBeHad(record, dependencies)) return false;',
      },
      {
        search: 'if (fence !== undefined && current.fence === fence) await',
        replace: 'if (fence !== undefined) await',
      },
    ],
    test: {
      file: 'test/leases/messages.test.ts',
      name: 'a message about a grant that has ended reads the record, has no effect, and sends no message',
    },
  },
  {
    name: 'a grant to a task in front of another sends no message',
    changes: [
      {
        search: "if (outcome !== 'gone') {\n        if (line.taskWaits) await",
        replace: "if (outcome !== 'gone') {\n        if (line.taskWaits && !isTask(oldest)) await",
      },
    ],
    test: {
      file: 'test/leases/messages.test.ts',
      name: 'a task that is granted the lease and exits in front of another task: the release that granted the lease has sent the message',
    },
  },
  {
    name: 'the event of an end believes what Step Functions said before the record was read',
    changes: [
      {
        file: 'shared/leases/execution-ended.ts',
        search: 'const end = await endOf(dependencies, reported, call);',
        replace: "const end = execution === '' ? await endOf(dependencies, reported, call) : 'failed';",
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'an execution that is redriven before the pass reads the record' },
  },
  {
    name: 'an overdue task is refused by the record from before its ticket',
    changes: [
      {
        search: 'const record = await readRecord(dependencies, seen.key, call);',
        replace: "const record = seen.key === '' ? await readRecord(dependencies, seen.key, call) : seen;",
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'the LeaseHeld of an overdue task names the current holder' },
  },
  {
    name: 'an overdue task is refused that another call has just granted the lease',
    changes: [
      {
        search: 'record.ticket === waiter.ticket && record.fence !== seen.fence) return',
        replace: 'record.ticket === waiter.ticket && record.fence === undefined) return',
      },
    ],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a hand-off with an old record sends no message to an overdue task',
    },
  },
  {
    name: 'a hand-off passes any number of dead tickets',
    changes: [
      {
        search: 'moved.length >= MAX_GONE || call.timeLeftMs() < TRANSFER_MS;',
        replace: 'call.timeLeftMs() < TRANSFER_MS;',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a line of dead tickets does not keep the schedule from other keys, and is gone after a few runs',
    },
  },
  {
    name: 'a hand-off grants whatever time is left',
    changes: [
      {
        search: 'moved.length >= MAX_GONE || call.timeLeftMs() < TRANSFER_MS;',
        replace: 'moved.length >= MAX_GONE;',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a lease is granted to no waiter if the invocation is nearly over: the lease is free, with its mark',
    },
  },
  {
    name: 'a grant that leaves no time to notify is kept',
    changes: [
      {
        search: 'const sent = call.timeLeftMs() >= NOTIFY_MS;',
        replace: 'const sent = call.timeLeftMs() >= 0;',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a grant ends again if the invocation is nearly over after the transfer, and its task keeps its position',
    },
  },
  {
    name: 'a hand-off that runs out of time clears the mark',
    changes: [
      {
        search: '...{ oldest: undefined, next: undefined, others: true,',
        replace: '...{ oldest: undefined, next: undefined, others: false,',
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a lease is granted to no waiter if the invocation is nearly over: the lease is free, with its mark',
    },
  },
  {
    name: 'an execution of our own account that is denied counts as missing',
    changes: [
      {
        search: "name === 'AccessDeniedException' && !isDescribed(executions, executionArn, call);",
        replace: "name === 'AccessDeniedException';",
      },
    ],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a target of the own account that may not be described keeps its grant',
    },
  },
  {
    name: 'a grant is freed though nobody can tell whether its execution runs',
    changes: [
      {
        search: "if (state !== 'ended' && !(orMissing && state === 'missing')) return undefined;",
        replace: "if (state === 'running') return undefined;",
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'the schedule leaves the lock of an execution of another account' },
  },
  {
    name: 'a mark that is no counter is raised like one',
    changes: [
      {
        search: "  waiters === undefined || /^\\d{1,30}$/.test(waiters.N ?? '');",
        replace: "  waiters === undefined || waiters.N !== 'never';",
      },
    ],
    test: {
      file: 'test/leases/compat.test.ts',
      name: 'a mark that another client wrote (a text) does not keep parked tasks from their grants',
    },
  },
  {
    name: 'the repair leaves what a hundred callers and more left to the next runs',
    changes: [
      {
        search: 'LAST_KEY_MS : spareMs)) break;',
        replace: 'LAST_KEY_MS : Number.POSITIVE_INFINITY)) break;',
      },
    ],
    test: {
      file: 'test/leases/expired-rows.test.ts',
      name: 'one run of the schedule deletes all expired rows behind a lease that runs',
    },
  },
  {
    name: 'the repair clears a pile for one key as long as its run lasts',
    changes: [
      {
        search: 'LAST_KEY_MS : spareMs)) break;',
        replace: 'LAST_KEY_MS : 0)) break;',
      },
    ],
    test: {
      file: 'test/leases/expired-rows.test.ts',
      name: 'a run of the schedule with 19999 of 40,000 ms left after the first row leaves',
    },
  },
  {
    name: 'the repair clears no row of a caller with half of its run over',
    changes: [
      {
        search: '(met++ < MIN_GOING ?',
        replace: '(met++ < 0 ?',
      },
    ],
    test: { file: 'test/leases/expired-rows.test.ts', name: 'a message deletes a hundred expired rows' },
  },
  {
    name: 'the repair ends a hundred rows of a key even if its run is nearly over',
    changes: [
      {
        search: 'LAST_KEY_MS : spareMs)) break;',
        replace: '0 : spareMs)) break;',
      },
    ],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a pile of expired rows is left to the next run once a run has less than five seconds left: with 4999 ms',
    },
  },
  {
    name: 'a message clears a whole pile',
    changes: [
      {
        search: 'only === undefined ? call.timeLeftMs() / 2 : Number.POSITIVE_INFINITY',
        replace: "only === '' ? 0 : call.timeLeftMs() / 2",
      },
    ],
    test: { file: 'test/leases/expired-rows.test.ts', name: 'a message deletes a hundred expired rows' },
  },
  {
    name: 'the repair deletes a pile by one request for each row at once',
    changes: [
      {
        search: 'if (ending.length === AT_ONCE) await endAll();',
        replace: 'if (ending.length === -1) await endAll();',
      },
    ],
    test: {
      file: 'test/leases/expired-rows.test.ts',
      name: 'one run of the schedule deletes all expired rows behind a lease that runs',
    },
  },
  {
    name: 'one run ends no more than a hundred overdue tasks of a key',
    changes: [
      {
        search: "else if ((await fail(row)) === 'unanswered') unanswered++;",
        replace: "else if (met <= MIN_GOING && (await fail(row)) === 'unanswered') unanswered++;",
      },
    ],
    test: {
      file: 'test/leases/bounds.test.ts',
      name: 'a line of overdue tasks costs a hand-off ten messages, and the schedule ends the rest',
    },
  },
  {
    name: 'a look that stopped at a pile takes the line for empty',
    changes: [
      {
        search: 'if (stops) undecided = true;',
        replace: 'if (stops) undecided = false;',
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'a release stops at 819 expired rows' },
  },
  {
    name: 'a look reads past any pile',
    changes: [
      {
        search: 'const reachesLimit = expiredRowLimit(clock.now(), MAX_EXPIRED_ROWS_IN_HAND_OFF);',
        replace: 'const reachesLimit = expiredRowLimit(clock.now(), Number.POSITIVE_INFINITY);',
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'a release stops at 819 expired rows' },
  },
  {
    name: 'a look that stopped at a pile counts the line as whole',
    changes: [
      {
        search: `      isFull = false;
      break;`,
        replace: `      isFull = stops;
      break;`,
      },
    ],
    test: { file: 'test/leases/expired-rows.test.ts', name: 'a release serves the waiter before many expired rows' },
  },
  {
    name: 'a pile begins a row early',
    changes: [
      {
        search: '++over >= size;',
        replace: '++over >= size - 1;',
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'a release passes 818 expired rows' },
  },
  {
    name: 'rows of callers that keep their places make a pile',
    changes: [
      {
        search: '!isTask(waiter) && waiter.keepUntil <= now && ++over',
        replace: '!isTask(waiter) && waiter.deadline <= now && ++over',
      },
    ],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a release passes any number of callers that keep their positions',
    },
  },
  {
    name: 'a task whose hand-off stopped at a pile is taken for notified',
    changes: [
      {
        search: "return end === 'empty' && !(await",
        replace: "return end === 'empty' || !(await",
      },
    ],
    test: { file: 'test/leases/line.test.ts', name: 'a release stops at 819 expired rows' },
  },
  {
    name: 'a reader counts past any pile',
    changes: [
      {
        search: 'if (reachesLimit(waiter)) return;',
        replace: 'if (reachesLimit(waiter)) continue;',
      },
    ],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a reader and a call that leaves count no waiters behind many expired rows',
    },
  },
  {
    name: 'the repair takes a line for empty that begins with a pile',
    changes: [
      {
        search: 'if (reachesLimit(waiter)) return true;',
        replace: 'if (reachesLimit(waiter)) return false;',
      },
    ],
    test: {
      file: 'test/leases/expired-rows.test.ts',
      name: 'the repair puts back a lost mark before many expired rows',
    },
  },
  {
    name: 'the repair asks past any pile whether somebody waits',
    changes: [
      {
        search: 'if (reachesLimit(waiter)) return true;',
        replace: 'if (reachesLimit(waiter)) continue;',
      },
    ],
    test: {
      file: 'test/leases/expired-rows.test.ts',
      name: 'the repair puts back a lost mark before many expired rows',
    },
  },
  {
    name: 'a look at the line of a pool reads past any pile',
    changes: [
      {
        search: 'if (reachesLimit(waiter)) return { ...line, others: true };',
        replace: 'if (reachesLimit(waiter)) continue;',
      },
    ],
    test: { file: 'test/permits/line.test.ts', name: 'a release stops at 819 expired rows' },
  },
  {
    name: 'a look that stopped at a pile takes the line of a pool for empty',
    changes: [
      {
        search: 'if (reachesLimit(waiter)) return { ...line, others: true };',
        replace: 'if (reachesLimit(waiter)) return line;',
      },
    ],
    test: { file: 'test/permits/line.test.ts', name: 'a release stops at 819 expired rows' },
  },
  {
    name: 'a pile in the line of a pool waits for many runs',
    changes: [
      {
        search: '{ ...line, fail, spareMs, strangers }',
        replace: '{ ...line, fail, spareMs: Number.POSITIVE_INFINITY, strangers }',
      },
    ],
    test: {
      file: 'test/permits/line.test.ts',
      name: 'one run of the schedule deletes all expired rows behind a holder that goes on',
    },
  },
  {
    name: 'a write that counts waiting calls is sent again after a lost answer',
    changes: [
      {
        search: '(landsOnce && tries.unanswered)',
        replace: 'false',
      },
    ],
    test: { file: 'test/leases/waits.test.ts', name: 'a call that ends its wait takes away no entry of another call' },
  },
  {
    name: 'a release grants a task the lease that this process cannot tell the task of',
    changes: [
      {
        search: '!(await canNotify(dependencies, line.oldest)) ? UNREAD : line',
        replace: '!(await canNotify(dependencies, line.oldest)) ? line : line',
      },
    ],
    test: {
      file: 'test/client/direct.test.ts',
      name: 'a direct client without Step Functions releases a lease with a task in line: the lease is free, and the next run of the schedule serves the task',
    },
  },
  {
    name: 'directTransport takes the time of a try for a minute',
    changes: [
      {
        search: 'timeoutMs - (systemClock',
        replace: 'NO_LIMIT_MS - (systemClock',
      },
    ],
    test: {
      file: 'test/client/direct.test.ts',
      name: 'a direct client with Step Functions leaves the task to the schedule if its try has less than two seconds left',
    },
  },
  {
    name: 'a withdrawal believes that the ticket it names was the only one',
    changes: [
      {
        search: 'if (named) return {',
        replace: 'if (ticket !== undefined) return {',
      },
    ],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a withdrawal by ticket finds the waiter with which the call has joined again',
    },
  },
  {
    name: 'each copy of a message sends the next one',
    changes: [
      {
        search: '(attribute_not_exists(look_at) OR look_at <= :soon)',
        replace: '(attribute_not_exists(look_at) OR look_at <= :soon OR look_at > :soon)',
      },
      {
        search: '(record.lookAt ?? 0) > now + EARLY_MS',
        replace: 'false',
      },
    ],
    test: {
      file: 'test/leases/messages.test.ts',
      name: 'messages that SQS delivers twice do not grow in number, if the second copy comes',
    },
  },
  {
    name: 'a grant inherits the note of the last message of the one before',
    changes: [{ search: ", 'look_at'],", replace: '],' }],
    test: {
      file: 'test/leases/messages.test.ts',
      name: 'messages that SQS delivers twice are the last about a grant, and the next grant has messages of its own',
    },
  },
  {
    name: 'the schedule works on one key after the other',
    changes: [{ search: 'KEYS_AT_ONCE = 8', replace: 'KEYS_AT_ONCE = 1' }],
    test: {
      file: 'test/line/many-keys.test.ts',
      name: 'a run of the schedule sees 150 keys with a line in the time of 75 round trips, in which it would see 25 keys one by one',
    },
  },
  {
    name: "keys that are worked on at once undo each other's counts",
    changes: [
      {
        search: 'const own = { ...repaired, granted: 0, told: 0, unanswered: 0 };',
        replace: 'const own = { ...repaired };',
      },
    ],
    test: {
      file: 'test/line/many-keys.test.ts',
      name: 'a run of the schedule counts what it does for keys at the same time',
    },
  },
  {
    name: 'a run that is cut short raises no alarm',
    changes: [{ file: 'shared/locks/repair.ts', search: 'if (!complete)', replace: 'if (false)' }],
    test: {
      file: 'test/line/many-keys.test.ts',
      name: 'a run of the schedule with 4999 ms left measures 1 runs that were cut short',
    },
  },
  {
    name: 'leases: an end of an execution frees its lease under the functions that work on within the grace',
    changes: [
      {
        search: 'return Math.min(expiry, now + graceMs);',
        replace: 'return now;',
      },
    ],
    promise: 'nobody holds a lease beside the work of an ended execution within its grace',
    only: 'patience',
    seed: 2,
  },
];
