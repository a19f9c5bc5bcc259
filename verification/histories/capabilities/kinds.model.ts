import { hasTerms } from '../../../shared/locks/route.ts';
import type { WorldFacts } from '../caller.ts';
import { BEGIN } from '../clocks.ts';
import type { Entry, Violation } from '../history.ts';
import { CLOCK_SKEW_MS } from '../service.ts';
import { beliefs } from './beliefs.ts';
import { eventsOf } from './line.model.ts';

// What must be true of a key that callers of both kinds use. Tasks are calls of acquire here (`asGrants`).

type Kind = 'lease' | 'pool';

/** The kind that a call asks for, or that its lease id has. Undefined for a call on either kind. */
function kindOf({ call, input, body }: Entry): Kind | undefined {
  if (call === 'acquire') return hasTerms(input) ? 'pool' : 'lease';
  return call === 'heartbeat' ? idKind(String(body?.leaseId ?? input.leaseId)) : undefined;
}

const idKind = (leaseId: string): Kind => (/^[pb]\./.test(leaseId) ? 'pool' : 'lease');

/** The calls of one kind, and those on either kind. */
export const ofKind = (entries: readonly Entry[], kind: Kind): Entry[] =>
  entries.filter((entry) => (kindOf(entry) ?? kind) === kind);

/** No caller believes to hold the lease of a key while another one believes to hold a permit of the key. */
export function neverBoth(entries: readonly Entry[]): Violation[] {
  const believed = beliefs(entries);
  const leases = believed.filter(({ lease }) => idKind(lease) === 'lease');
  const permits = believed.filter(({ lease }) => idKind(lease) === 'pool');
  for (const one of leases)
    for (const other of permits)
      if (one.from < other.to && other.from < one.to)
        return [
          {
            promise: 'never a lease beside a permit',
            detail: `${one.entry.actor} holds the lease until ${one.to.toFixed(0)} ms, and ${other.entry.actor} a permit from ${other.from.toFixed(0)} ms`,
            entries: [one.entry, other.entry],
          },
        ];
  return [];
}

/** In the order of the writes on the record, each grant has a higher fence than all before, whatever their kinds. */
export function fencesRiseOnRecord(history: readonly Entry[], key: string): Violation[] {
  let last = { fence: 0, request: '' };
  for (const event of eventsOf(history, key)) {
    if (event.what !== 'grant') continue;
    const isRenewed = event.request === last.request && event.fence === last.fence;
    if (event.fence <= last.fence && !isRenewed)
      return [
        {
          promise: 'fences rise with each grant',
          detail: `${event.fence} after ${last.fence}`,
          entries: [event.entry],
        },
      ];
    last = event;
  }
  return [];
}

interface Told {
  fence: number | null;
  expiresAt: string | null;
}

/** Requests have names in the record of a pool. */
const kindOfGrant = ({ request }: { request: string }): Kind => (request.includes(' of ') ? 'lease' : 'pool');

/** A caller that is refused because of its kind met a holder of the other kind, or a line. */
export function wrongKindIsTrue(
  history: readonly Entry[],
  { key, grants }: { key: string; grants: readonly Entry[] },
  { spreadMs }: WorldFacts,
): Violation[] {
  const events = eventsOf(history, key);
  return grants.flatMap((entry) => {
    const { call, outcome, body, calledAt, answeredAt } = entry;
    if (call !== 'acquire' || outcome !== 'WrongKind' || !answeredAt) return [];
    // Those of a pool whose places no caller has needed are told, too.
    const { kind, holders = [body] } = body as unknown as { kind: Kind; holders?: Told[] };
    const untrue = (detail: string): Violation[] => [
      { promise: 'WrongKind is told only of a key that the other kind uses', detail, entries: [entry] },
    ];
    if (kind === kindOf(entry)) return untrue(`${entry.actor} asked for a ${kind}`);
    if (hadLine(events, calledAt.moment, answeredAt.moment)) return [];
    const isHeld = ({ fence, expiresAt }: Told) => {
      const endsMs = Date.parse(expiresAt ?? '') - BEGIN + CLOCK_SKEW_MS + spreadMs;
      const wasGranted = events.some(
        (event) =>
          event.what === 'grant' &&
          // A late grant of a lease raises its fence after the write that granted.
          (event.fence === fence || (kind === 'lease' && fence !== null && event.fence < fence)) &&
          kindOfGrant(event) === kind &&
          event.moment < answeredAt.moment,
      );
      return wasGranted && endsMs >= calledAt.ms && !wasGivenBack(history, { key, fence }, calledAt.moment);
    };
    const told = (holders as Told[]).map(({ fence }) => fence).join(', ');
    return (holders as Told[]).some(isHeld) ? [] : untrue(`no ${kind} with fence ${told} was held during the call`);
  });
}

/** Whether a waiter was in line at any moment of a call. */
function hadLine(events: ReturnType<typeof eventsOf>, from: number, to: number): boolean {
  const waiting = new Set<string>();
  for (const event of events) {
    if (event.moment > to) break;
    if (event.what === 'row') waiting.add(event.ticket);
    if (event.moment > from && waiting.size > 0) return true;
    if (event.what === 'deletion') waiting.delete(event.ticket);
  }
  return waiting.size > 0;
}

function wasGivenBack(
  history: readonly Entry[],
  { key, fence }: { key: string; fence: number | null },
  before: number,
): boolean {
  const ofKey = history.filter(({ input, outcome }) => input.key === key && outcome === 'ok');
  const leaseId = ofKey.find(({ body }) => body?.fence === fence && body?.leaseId !== undefined)?.body?.leaseId;
  return ofKey.some(
    ({ call, input, body, answeredAt }) =>
      call === 'release' && input.leaseId === leaseId && body?.released === true && Number(answeredAt?.moment) < before,
  );
}
