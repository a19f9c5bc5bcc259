import type { Entry } from '../history.ts';

/** A stretch of simulated time in which a caller rightly believed that it held the key. */
interface Belief {
  lease: string;
  entry: Entry;
  from: number;
  to: number;
}

export function beliefs(entries: readonly Entry[]): Belief[] {
  const found = entries.flatMap((entry): Belief[] => {
    const { call, outcome, body = {}, input, answeredAt } = entry;
    if (outcome !== 'ok' || !answeredAt) return [];
    const from = answeredAt.ms;
    if (call === 'acquire' || call === 'heartbeat') {
      const to = entry.calledAt.ms + Number(body.waitedMs ?? 0) + Number(body.remainingMs);
      return [{ lease: String(body.leaseId), entry, from, to }];
    }
    const isRust = (call === 'rustAcquire' || call === 'rustExtend') && body.version !== undefined;
    return isRust
      ? [{ lease: String(input.lease), entry, from, to: entry.calledAt.ms + Number(input.ttlSeconds) * 1000 }]
      : [];
  });
  return found
    .map((belief) => ({ ...belief, to: Math.min(belief.to, ...endings(entries, belief)) }))
    .filter(({ from, to }) => from < to);
}

/** When a lease was released, or an operator began to break it. */
function endings(entries: readonly Entry[], { lease, entry }: Belief): number[] {
  const { body = {} } = entry;
  const { requestId } = grantOf(entries, lease)?.input ?? {};
  const ends = entries.filter((end) => {
    const { call, input, outcome } = end;
    if (call === 'release') return input.leaseId === lease && reaches(end, entry, entries);
    if (call === 'withdraw') return input.requestId === requestId;
    if (call === 'rustRelease') return input.lease === lease;
    return call === 'breakLease' && input.fence === body.fence && outcome !== 'NotFound' && outcome !== 'Conflict';
  });
  return ends.map(({ calledAt }) => calledAt.ms);
}

/**
 * The end of an execution (`asGrants`) ends the answers from before the redrive, and those to other callers that do not name the execution. It ends
 * later answers to heartbeats too, unless the request was answered again: code that outlived the run before may send a heartbeat, so a heartbeat does
 * not protect the grant from a late event of its execution's end.
 */
const reaches = (
  { actor, input: { redrivenAt, isOlder, isNamed } }: Entry,
  answered: Entry,
  entries: readonly Entry[],
): boolean => {
  if (redrivenAt === undefined || answered.calledAt.moment < Number(redrivenAt)) return true;
  if (isOlder === true && answered.actor !== actor) return true;
  const isAnsweredAgain = entries.some(
    ({ call, outcome, body, calledAt, answeredAt }) =>
      call === 'acquire' &&
      outcome === 'ok' &&
      body?.leaseId === answered.body?.leaseId &&
      calledAt.moment > Number(redrivenAt) &&
      Number(answeredAt?.moment) < answered.calledAt.moment,
  );
  return isNamed === true && answered.call === 'heartbeat' && !isAnsweredAgain;
};

const grantOf = (entries: readonly Entry[], lease: string): Entry | undefined =>
  entries.find(({ call, outcome, body }) => call === 'acquire' && outcome === 'ok' && body?.leaseId === lease);
