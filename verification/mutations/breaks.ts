import type { Change, Mutation } from './mutation.ts';

const inLeases = (file: string, search: string, replace: string): Change => ({
  file: `shared/leases/${file}`,
  search,
  replace,
});
const shown = (name: string, [file, test]: [file: string, test: string], ...changes: Change[]): Mutation => ({
  ...{ name, changes, test: { file: `test/${file}/break.test.ts`, name: test } },
});

/** Ways to break the break that waits for the holder (docs/protocols/leases.md#break). */
export const BREAKS: Mutation[] = [
  shown(
    'a heartbeat extends a lease that is ending',
    ['leases', 'tells the holder at its next heartbeat'],
    inLeases('heartbeat.ts', 'isHeld, hasNoEndMark, condition', 'isHeld, condition'),
    inLeases('heartbeat.ts', 'hasLeaseId, hasNoEndMark, isHeld }', 'hasLeaseId, isHeld }'),
  ),
  shown(
    'a heartbeat extends a permit that is ending',
    ['pools', 'marks the permit, and its holder is told'],
    inLeases('pools/heartbeat.ts', 'isOf(proof), hasNoEndMark(name), condition', 'isOf(proof), condition'),
    inLeases('pools/heartbeat.ts', 'expiresBefore, hasNoEndMark, isOf }', 'expiresBefore, isOf }'),
  ),
  shown(
    'the end mark gives a lease no new version',
    ['queue', 'is refused as a repeat that read the grant before the mark'],
    inLeases('break.ts', 'SET ending_at = :now, lease_version = :version', 'SET ending_at = :now, other = :version'),
  ),
  shown(
    'the end mark stays on the next grant',
    ['queue', 'when the holder releases it'],
    inLeases('queue/transfer.ts', "'broken_until', 'ending_at', ", "'broken_until', "),
  ),
  shown(
    'a request takes its own ending lease over when the ttl has ended',
    ['leases', 'refuses a repeat of the request of the holder'],
    inLeases('first-try.ts', 'isClaimed, isNotEndingFor(grant)', 'isClaimed'),
    inLeases('first-try.ts', 'isFreeFor, isNotEndingFor, isUnmarked', 'isFreeFor, isUnmarked'),
  ),
  shown(
    'a break that waits leaves a grant that was not claimed to its caller',
    ['queue', 'because its caller has not claimed it'],
    inLeases('break.ts', 'all(isHeld, isClaimed, not(', 'all(isHeld, not('),
    inLeases('break.ts', 'hasNoEndMark, isClaimed, isExpired', 'hasNoEndMark, isExpired'),
  ),
  shown(
    'a break that waits ends the lease of a task that was notified',
    ['queue', 'but waits for a task that was notified'],
    inLeases('queue/unnotified.ts', "=== 'delivered'", "!== 'unanswered'"),
  ),
  shown(
    'the schedule renews a grant that is ending',
    ['queue', 'is finished by the schedule'],
    inLeases('queue/repair.ts', 'if (isEnding(record)) {', 'if (isEnding(record) && call.timeLeftMs() < 0) {'),
  ),
  shown(
    'the next holder is told that a broken lease was released',
    ['queue', 'when the holder was granted the lease in front of others'],
    inLeases('queue/transfer.ts', 'hasNoEndMark, isUsable', 'isUsable'),
  ),
];
