import { EXCLUSIVE_WEIGHT, MAX_LIMIT } from '../../../shared/locks/record/identity.ts';
import type { WorldFacts } from '../caller.ts';
import type { Entry, Violation } from '../history.ts';
import { beliefs } from './beliefs.ts';

// The rules of permits that answers can show. Tasks count as calls of acquire (`asGrants`).

export interface Terms {
  weight: number;
  /** The most weight that may be in use, this permit included. */
  limit: number;
}

/** What a request asks for. A request that wants the key alone does not fit beside a holder, and neither does a third-party client. */
export function termsOf({ input }: Entry): Terms {
  const isExclusive = input.mode === 'exclusive' || (input.mode === undefined && input.limit === undefined);
  if (isExclusive) return { weight: EXCLUSIVE_WEIGHT, limit: EXCLUSIVE_WEIGHT };
  return { weight: Number(input.weight ?? 1), limit: Number(input.limit ?? MAX_LIMIT) };
}

/**
 * Whether the record of a free key may be deleted, by a third-party client or by a clean-up with a clock that is far ahead. Then the next fence is higher
 * only as far as the clocks agree.
 */
export const mayForget = ({ foreignLeases, sweeps, withinBound }: WorldFacts): boolean =>
  foreignLeases || (sweeps && !withinBound);

const isAcquire = ({ call }: Entry): boolean => call === 'acquire';
const isGrant = (entry: Entry): boolean => isAcquire(entry) && entry.outcome === 'ok';
const isSameRequest = (one: Entry, other: Entry): boolean =>
  one.input.requestId === other.input.requestId && one.input.holder === other.input.holder;

/** A permit, and the stretches of simulated time in which its holder rightly believed that it had it. */
interface Permit extends Terms {
  grant: Entry;
  fence: number;
  stretches: { from: number; to: number }[];
}

function permitsOf(entries: readonly Entry[]): Permit[] {
  const permits = new Map<string, Permit>();
  for (const { lease, entry, from, to } of beliefs(entries)) {
    const grant = entries.find((one) => isGrant(one) && one.body?.leaseId === lease) ?? entry;
    const known = permits.get(lease) ?? {
      ...{ grant, fence: Number(entry.body?.fence ?? 0), stretches: [] },
      ...termsOf(grant),
    };
    known.stretches.push({ from, to });
    permits.set(lease, known);
  }
  return [...permits.values()];
}

/**
 * When a holder receives its permit, all holders together weigh at most its own limit. Limits may differ, so a later holder with a higher limit may
 * still receive a permit beside it.
 */
export function neverTooHeavy(entries: readonly Entry[]): Violation[] {
  const permits = permitsOf(entries).sort((a, b) => a.fence - b.fence);
  const moments = permits.flatMap(({ stretches }) => stretches.map(({ from }) => from));
  for (const at of moments) {
    const valid = permits.filter(({ stretches }) => stretches.some(({ from, to }) => from <= at && at < to));
    let used = 0;
    for (const { weight, limit, grant } of valid) {
      used += weight;
      if (used <= limit) continue;
      const isAlone = used >= EXCLUSIVE_WEIGHT;
      const holders = valid.map((one) => `${one.grant.actor} (${one.weight}, fence ${one.fence})`);
      return [
        {
          promise: isAlone
            ? 'an exclusive holder never has another holder beside it'
            : 'never more weight than a holder allowed when it came in',
          detail: `${grant.actor} came in up to ${limit}, and at ${at.toFixed(0)} ms these hold: ${holders.join(', ')}`,
          entries: valid.map((one) => one.grant),
        },
      ];
    }
  }
  return [];
}

/**
 * If a request was first sent after another grant was answered, its grant has the higher fence. The first call counts, because the line may grant a permit
 * before its caller comes back for it.
 */
export function fencesRiseByRequest(entries: readonly Entry[], facts: WorldFacts): Violation[] {
  if (mayForget(facts)) return [];
  const calls = entries.filter(isAcquire);
  const firstAsked = (grant: Entry) =>
    Math.min(...calls.filter((one) => isSameRequest(one, grant)).map(({ calledAt }) => calledAt.moment));
  const grants = calls.filter(isGrant);
  for (const one of grants)
    for (const other of grants) {
      if (one.body?.leaseId === other.body?.leaseId) continue;
      const [before, after] = [Number(one.body?.fence), Number(other.body?.fence)];
      const follows = Number(one.answeredAt?.moment) < firstAsked(other);
      if (follows ? after <= before : after === before)
        return [{ promise: 'fences rise with each grant', detail: `${after} after ${before}`, entries: [one, other] }];
    }
  return [];
}

/**
 * While a holder rightly counts on its permit, a repeat of its request finds that permit, and a heartbeat does not find it lost. A repeat may be
 * answered LeaseHeld if the permit has expired by the clock of the answering machine, and not yet by the clock of the granting machine.
 */
export function foundAgain(entries: readonly Entry[], { withinBound, spreadMs }: WorldFacts): Violation[] {
  if (!withinBound) return [];
  const counted = beliefs(entries).map((belief) => ({
    ...belief,
    grant: entries.find((one) => isGrant(one) && one.body?.leaseId === belief.lease),
  }));
  return entries.flatMap((entry) => {
    const { call, answeredAt, outcome, body, calledAt, input } = entry;
    if (!answeredAt) return [];
    const slackMs = outcome === 'LeaseHeld' ? spreadMs : 0;
    const isCounted = ({ entry: granted, to }: (typeof counted)[number]) =>
      Number(granted.answeredAt?.moment) < calledAt.moment && to > answeredAt.ms + slackMs;
    if (call === 'heartbeat' && outcome === 'LeaseLost') {
      const lost = counted.find((belief) => belief.lease === input.leaseId && isCounted(belief));
      return lost ? [falselyEnded(lost.entry, entry)] : [];
    }
    if (!isAcquire(entry) || body?.reason === 'cancelled') return [];
    const isRefused = outcome === 'LeaseHeld' || outcome === 'LeaseLost';
    const own = counted.find(
      (belief) =>
        belief.grant !== undefined &&
        isSameRequest(belief.grant, entry) &&
        isCounted(belief) &&
        (isRefused || (outcome === 'ok' && body?.leaseId !== belief.lease)),
    );
    if (!own) return [];
    if (isRefused) return [falselyEnded(own.entry, entry)];
    return [{ promise: ONE_PERMIT, detail: `${entry.actor} was granted another permit`, entries: [own.entry, entry] }];
  });
}

/** The promise that a request never has two permits. */
export const ONE_PERMIT = 'a request has one permit';

const falselyEnded = (granted: Entry, entry: Entry): Violation => ({
  promise: 'no holder loses a permit before its time',
  detail: `${entry.actor} was answered ${entry.outcome}, and its permit was not over`,
  entries: [granted, entry],
});
