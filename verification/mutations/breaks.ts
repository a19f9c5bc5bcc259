import { type Change, change, type Mutation } from './mutation.ts';

const shown = (name: string, [file, test]: [file: string, test: string], ...changes: Change[]): Mutation => ({
  ...{ name, changes, test: { file: `test/${file}.test.ts`, name: test } },
});

/** Ways to break the break that waits for the holder (docs/protocols/leases.md#break). */
export const BREAKS: Mutation[] = [
  shown(
    'a heartbeat extends a lease that is ending',
    [
      'leases/line',
      'a break that waits marks the grant, and reports the break to the holder at its next heartbeat, which extends no grant',
    ],
    change('isHeld, hasNoEndMark, condition', 'isHeld, condition'),
    change('hasLeaseId, hasNoEndMark, isHeld }', 'hasLeaseId, isHeld }'),
  ),
  shown(
    'a heartbeat extends a permit that is ending',
    [
      'permits/line',
      'a break that waits marks the grant, and reports the break to the holder at its next heartbeat, which extends no grant',
    ],
    change('isOf(proof), hasNoEndMark(name), condition', 'isOf(proof), condition'),
    change('expiresBefore, hasNoEndMark, isOf }', 'expiresBefore, isOf }'),
  ),
  shown(
    'the end mark gives a lease no new version',
    ['leases/break', 'a break that waits refuses a repeat that read the grant before the mark'],
    change('SET ending_at = :now, lease_version = :version', 'SET ending_at = :now, other = :version'),
  ),
  shown(
    'the end mark stays on the next grant',
    ['leases/line', 'a break that waits leaves the lock to a task in line at the end of the grant'],
    change("'broken_until', 'ending_at', ", "'broken_until', "),
  ),
  shown(
    'a request takes its own ending lease over when the ttl has ended',
    [
      'leases/break',
      "a break that waits refuses a repeat of the holder's request, before and after the end of the ttl, until another caller has the key",
    ],
    change('isClaimed, isNotEndingFor(grant)', 'isClaimed', 'shared/leases/first-try.ts'),
  ),
  shown(
    'a break that waits leaves a grant that was not claimed to its caller',
    ['leases/line', 'a break that waits ends a grant at once that its caller has not claimed'],
    change('all(isHeld, isClaimed, not(', 'all(isHeld, not('),
    change('hasNoEndMark, isClaimed, isExpired', 'hasNoEndMark, isExpired'),
  ),
  shown(
    'a break that waits ends the lease of a task that was notified',
    ['leases/line', 'a break that waits keeps the grant of a task that was notified, and whose ticket is still there'],
    change("return delivery === 'delivered';", "return delivery !== 'unanswered';", 'shared/leases/break.ts'),
  ),
  shown(
    'the schedule renews a grant that is ending',
    [
      'leases/line',
      'a break that waits is finished by the schedule if the break exited before it looked at the ticket',
    ],
    change('if (isEnding(record)) {', 'if (isEnding(record) && call.timeLeftMs() < 0) {'),
  ),
  shown(
    'the operator of a break stays on the next grant in line',
    [
      'locks/breakers',
      'the operator that broke a lease is named to the next in line, and to each reader, after a break that waits for the holder',
    ],
    change("['broken_by', 'bound_at'", "['bound_at'"),
  ),
  shown(
    'the operator of an earlier break is named for a holder that was not broken',
    [
      'locks/breakers',
      'the operator is not named for the next holder, also if the execution of that holder ended before its ticket was deleted',
    ],
    change("? ', prev_by' : ''", "? '' : ''"),
  ),
  shown(
    'the holder that releases a broken lease is named as its operator',
    [
      'locks/breakers',
      'the operator is unknown if the break was not authenticated, and never the holder that releases: with wait',
    ],
    change("ended: 'broken', at: now, by: brokenBy };", "ended: 'broken', at: now, by: brokenBy ?? by };"),
  ),
  shown(
    'a list by age shows the permit that ends first',
    [
      'locks/listed',
      'the list of keys can be sorted by who has held a key for the longest time, and by the longest line, page by page',
    ],
    change("by === 'age' ? byAge : byEnd", "by === 'age' ? byEnd : byEnd"),
  ),
  shown(
    'the next holder is told that a broken lease was released',
    [
      'leases/break',
      'a break that waits names the holder as broken to the next task, if the line granted the lease to the holder in front of that task',
    ],
    change('hasNoEndMark, isUsable', 'isUsable'),
  ),
];
