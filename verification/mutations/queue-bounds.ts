import type { Mutation } from './mutation.ts';

/** Ways to break what bounds a queue of dead tickets, and what is known of executions. Histories are too small to show them. */
export const QUEUE_BOUNDS: Mutation[] = [
  {
    name: 'a holder keeps the lease that it gives back where the line cannot be read',
    changes: [
      {
        file: 'shared/leases/queue/hand-off.ts',
        search: 'if (error instanceof HoldfastError && GIVEN_BACK',
        replace: "if (search.record.key === '' && error instanceof HoldfastError && GIVEN_BACK",
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'lets a release end the lease, with its mark' },
  },
  {
    name: 'a grant that expired ends where the line cannot be read',
    changes: [
      {
        file: 'shared/leases/queue/hand-off.ts',
        search: 'error instanceof HoldfastError && GIVEN_BACK.has(search.ending) && isLeased(search.record)',
        replace: 'error instanceof HoldfastError',
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'fails a call that would take an expired lease over' },
  },
  {
    name: 'a release in line fails with its first look',
    changes: [
      {
        file: 'shared/leases/queue/quick-release.ts',
        search: ', call).catch(ifUnread);',
        replace: ', call);',
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'once, by a holder that was in line itself' },
  },
  {
    name: 'a message that was throttled is left to the schedule',
    changes: [
      {
        file: 'shared/leases/queue/delivery.ts',
        search: 'if (pauseMs !== undefined && call',
        replace: 'if (pauseMs === 0 && call',
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'is sent again, so a ticket that no task has is passed over' },
  },
  {
    name: 'a message that was throttled is sent again without a look at the ttl',
    changes: [
      {
        file: 'shared/leases/queue/delivery.ts',
        search: 'if (isFresh && !isShort(grant, now)) {',
        replace: 'if (isFresh && (renewals === 0 || !isShort(grant, now))) {',
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'arrives with the whole ttl, and not after the third pause' },
  },
  {
    name: 'no message looks at the end of a plain grant with a task behind it',
    changes: [
      {
        file: 'shared/leases/queue/park.ts',
        search: 'if (isFirst || standing.claimTtlMs !== undefined)',
        replace: 'if (standing.claimTtlMs !== undefined)',
      },
    ],
    test: { file: 'test/queue/messages.test.ts', name: 'gets the lease by a message a second after it can be had' },
  },
  {
    name: 'each task that parks sends a message',
    changes: [
      {
        file: 'shared/leases/queue/park.ts',
        search: 'const isFirst = Number(standing.waiters?.N) === 1;',
        replace: 'const isFirst = Number(standing.waiters?.N) > 0;',
      },
    ],
    test: { file: 'test/queue/messages.test.ts', name: 'has its message sent by the first in line alone' },
  },
  {
    name: 'a message about a grant that has ended goes on with the one that stands',
    changes: [
      {
        file: 'shared/leases/queue/repair.ts',
        search: 'record.fence !== fence && !canBeHad(dependencies, record)) return false;',
        replace: 'record.fence === undefined && !canBeHad(dependencies, record)) return false;',
      },
      {
        file: 'shared/leases/queue/repair.ts',
        search: 'if (fence !== undefined && standing.fence === fence) await',
        replace: 'if (fence !== undefined) await',
      },
    ],
    test: { file: 'test/queue/messages.test.ts', name: 'about a grant that has ended reads the record' },
  },
  {
    name: 'a grant to a task in front of another sends no message',
    changes: [
      {
        file: 'shared/leases/queue/hand-off.ts',
        search: "if (outcome !== 'gone') {\n        if (line.taskWaits) await",
        replace: "if (outcome !== 'gone') {\n        if (line.taskWaits && !isTask(oldest)) await",
      },
    ],
    test: { file: 'test/queue/messages.test.ts', name: 'in front of another: the release that granted it has sent' },
  },
  {
    name: 'the event of an end believes what Step Functions said before the record was read',
    changes: [
      {
        file: 'shared/leases/queue/execution-ended.ts',
        search: "if (await goesOn(dependencies, { execution, settled }, call)) return { outcome: 'other' };",
        replace: "if (execution === '') return { outcome: 'other' };",
      },
    ],
    test: { file: 'test/queue/execution-ended.test.ts', name: 'and is redriven before the pass reads the record' },
  },
  {
    name: 'an overdue task is refused by the record from before its ticket',
    changes: [
      {
        file: 'shared/leases/queue/line.ts',
        search: 'const record = await readRecord(dependencies, seen.key, call);',
        replace: "const record = seen.key === '' ? await readRecord(dependencies, seen.key, call) : seen;",
      },
    ],
    test: { file: 'test/queue/overdue.test.ts', name: 'names the holder of now' },
  },
  {
    name: 'an overdue task is refused that another call has just granted the lease',
    changes: [
      {
        file: 'shared/leases/queue/line.ts',
        search: 'record.ticket === ticket.ticket && record.fence !== seen.fence) return',
        replace: 'record.ticket === ticket.ticket && record.fence === undefined) return',
      },
    ],
    test: { file: 'test/queue/overdue.test.ts', name: 'leaves it alone where it has just received the lease' },
  },
  {
    name: 'a hand-off passes any number of dead tickets',
    changes: [
      {
        file: 'shared/leases/queue/hand-off.ts',
        search: 'moved.length >= MAX_GONE || call.timeLeftMs() < TRANSFER_MS;',
        replace: 'call.timeLeftMs() < TRANSFER_MS;',
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'does not keep the schedule from other keys' },
  },
  {
    name: 'a hand-off grants whatever time is left',
    changes: [
      {
        file: 'shared/leases/queue/hand-off.ts',
        search: 'moved.length >= MAX_GONE || call.timeLeftMs() < TRANSFER_MS;',
        replace: 'moved.length >= MAX_GONE;',
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'the lease is given to nobody: it is free, with its mark' },
  },
  {
    name: 'a grant that leaves no time to notify is kept',
    changes: [
      {
        file: 'shared/leases/queue/hand-off.ts',
        search: 'const sent = call.timeLeftMs() >= NOTIFY_MS;',
        replace: 'const sent = call.timeLeftMs() >= 0;',
      },
    ],
    test: {
      file: 'test/queue/bounds.test.ts',
      name: 'after the transfer, the grant ends again, and its task keeps its place',
    },
  },
  {
    name: 'a hand-off that runs out of time clears the mark',
    changes: [
      {
        file: 'shared/leases/queue/hand-off.ts',
        search: '...{ oldest: undefined, next: undefined, others: true,',
        replace: '...{ oldest: undefined, next: undefined, others: false,',
      },
    ],
    test: { file: 'test/queue/bounds.test.ts', name: 'the lease is given to nobody: it is free, with its mark' },
  },
  {
    name: 'an execution of our own account that is denied counts as missing',
    changes: [
      {
        file: 'shared/leases/queue/execution-state.ts',
        search: "name === 'AccessDeniedException' && !isDescribed(executions, executionArn, call);",
        replace: "name === 'AccessDeniedException';",
      },
    ],
    test: { file: 'test/queue/execution-ended.test.ts', name: 'is not freed where it names our own account' },
  },
  {
    name: 'a grant is freed though nobody can tell whether its execution runs',
    changes: [
      {
        file: 'shared/leases/queue/execution-ended.ts',
        search: "if (state === 'running' || state === 'foreign') return 0;",
        replace: "if (state === 'running') return 0;",
      },
    ],
    test: { file: 'test/queue/execution-ended.test.ts', name: 'is left to its expiry by the schedule' },
  },
  {
    name: 'a mark that is no counter is raised like one',
    changes: [
      {
        file: 'shared/leases/queue/marks.ts',
        search: "  waiters === undefined || /^\\d{1,30}$/.test(waiters.N ?? '');",
        replace: "  waiters === undefined || waiters.N !== 'never';",
      },
    ],
    test: {
      file: 'test/leases/compat.test.ts',
      name: 'a text: the tasks that are parked have their turns all the same',
    },
  },
];
