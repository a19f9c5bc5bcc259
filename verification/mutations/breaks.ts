import { type Change, change, type Mutation } from './mutation.ts';

const shown = (name: string, [file, test]: [file: string, test: string], ...changes: Change[]): Mutation => ({
  ...{ name, changes, test: { file: `test/${file}/break.test.ts`, name: test } },
});

/** Ways to break the break that waits for the holder (docs/protocols/leases.md#break). */
export const BREAKS: Mutation[] = [
  shown(
    'a heartbeat extends a lease that is ending',
    ['leases', 'tells the holder at its next heartbeat'],
    change('isHeld, hasNoEndMark, condition', 'isHeld, condition'),
    change('hasLeaseId, hasNoEndMark, isHeld }', 'hasLeaseId, isHeld }'),
  ),
  shown(
    'a heartbeat extends a permit that is ending',
    ['permits', 'marks the permit, and its holder is told'],
    change('isOf(proof), hasNoEndMark(name), condition', 'isOf(proof), condition'),
    change('expiresBefore, hasNoEndMark, isOf }', 'expiresBefore, isOf }'),
  ),
  shown(
    'the end mark gives a lease no new version',
    ['queue', 'is refused as a repeat that read the grant before the mark'],
    change('SET ending_at = :now, lease_version = :version', 'SET ending_at = :now, other = :version'),
  ),
  shown(
    'the end mark stays on the next grant',
    ['queue', 'when the holder releases it'],
    change("'broken_until', 'ending_at', ", "'broken_until', "),
  ),
  shown(
    'a request takes its own ending lease over when the ttl has ended',
    ['leases', 'refuses a repeat of the request of the holder'],
    change('isClaimed, isNotEndingFor(grant)', 'isClaimed', 'shared/leases/first-try.ts'),
    change('isFreeFor, isNotEndingFor, isUnmarked', 'isFreeFor, isUnmarked'),
  ),
  shown(
    'a break that waits leaves a grant that was not claimed to its caller',
    ['queue', 'because its caller has not claimed it'],
    change('all(isHeld, isClaimed, not(', 'all(isHeld, not('),
    change('hasNoEndMark, isClaimed, isExpired', 'hasNoEndMark, isExpired'),
  ),
  shown(
    'a break that waits ends the lease of a task that was notified',
    ['queue', 'but waits for a task that was notified'],
    change("return delivery === 'delivered';", "return delivery !== 'unanswered';", 'shared/leases/break.ts'),
  ),
  shown(
    'the schedule renews a grant that is ending',
    ['queue', 'is finished by the schedule'],
    change('if (isEnding(record)) {', 'if (isEnding(record) && call.timeLeftMs() < 0) {'),
  ),
  shown(
    'the next holder is told that a broken lease was released',
    ['queue', 'when the holder was granted the lease in front of others'],
    change('hasNoEndMark, isUsable', 'isUsable'),
  ),
];
