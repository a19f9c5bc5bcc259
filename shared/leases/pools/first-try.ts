import { integer } from '../../aws/attributes.ts';
import type { Call } from '../../aws/call.ts';
import { all } from '../../aws/condition.ts';
import type { Json } from '../record.ts';
import { attributesOf, hasNoEntry, hasRoom, hasUsed, isNotRemembered, stillStand } from './conditions.ts';
import type { PoolDependencies } from './dependencies.ts';
import { ending, entryItem, entryOf, type PoolEntry, type PoolRecord, unusable } from './record.ts';
import { toEnd, weightOf } from './room.ts';
import { permitLost } from './views.ts';
import { updatePool, type Written } from './write.ts';

/** A request for a permit. */
export interface PermitRequest {
  key: string;
  name: string;
  holder: string;
  ttlMs: number;
  /** Null for one who wants the key alone. */
  limit: number | null;
  weight: number;
  /** What may be in use already. */
  room: number;
  data?: Json | undefined;
}

/** A grant. */
export interface Granted {
  won: true;
  standing: PoolRecord;
  /** Whether an earlier try of the request got it. */
  repeated: boolean;
  /** In whose place it is. */
  ended: readonly PoolEntry[];
  /** When `waitedMs` ends. */
  triedAt: number;
}

/** Or the record that keeps the request from it. */
type Outcome = Granted | { won: false; standing: PoolRecord };

/** A take-over is tried again only where one of those who expired has extended its permit, or has gone, since it was seen. */
const MAX_TRIES = 5;

/** DynamoDB limits an expression to 4 KB. */
const MOST_ENDED = 40;

/**
 * Acquires without waiting (docs/protocols/pools.md#acquire). One write, or two where the places of expired holders are needed.
 * @throws HoldfastError LeaseLost, Throttled, Unavailable, OutcomeUnknown
 */
export async function tryOnce(dependencies: PoolDependencies, request: PermitRequest, call: Call): Promise<Outcome> {
  const { clock, clockSkewMs } = dependencies;
  let ended: PoolEntry[] = [];
  for (let tries = 1; ; ) {
    const triedAt = clock.now();
    const isWhole = ended.length <= MOST_ENDED;
    const going = ended.slice(0, MOST_ENDED);
    const { won, standing } = isWhole
      ? await grant(dependencies, { request, ended, now: triedAt }, call)
      : await end(dependencies, { key: request.key, ended: going, now: triedAt }, call);
    const own = entryOf(standing, request.name);
    if (isWhole && won && own) return { won: true, standing, repeated: false, ended, triedAt };
    if (own && own.expiresAt > triedAt) return { won: true, standing, repeated: true, ended: [], triedAt };
    const how = own ? undefined : ending(standing, request.name);
    if (how) throw permitLost(request.key, how);
    const next = toEnd(standing, request, { now: clock.now(), clockSkewMs });
    if (isWhole && ended.length === 0 && next?.length === 0) throw unusable(standing, request.name);
    if (!won) tries++;
    if (!next || tries > MAX_TRIES) return { won: false, standing };
    ended = next;
  }
}

interface Ending {
  ended: readonly PoolEntry[];
  /** Epoch milliseconds. */
  now: number;
}

function grant(
  dependencies: PoolDependencies,
  { request, ended, now }: Ending & { request: PermitRequest },
  call: Call,
): Promise<Written> {
  const { key, name, holder, ttlMs, limit, weight, room, data } = request;
  const freed = weightOf(ended);
  const times = { expiresAt: now + ttlMs, ttlMs, acquiredAt: now };
  const entry = { id: dependencies.ids.uuid(), version: dependencies.ids.uuid(), holder, ...times, weight, data };
  const others = ended.filter((one) => one.name !== name);
  const isFirst = others.length === ended.length;
  const fence = 'if_not_exists(#fence, :first) + :one';
  const entryIsFree = isFirst ? [hasNoEntry(name)] : [];
  return updatePool(
    dependencies,
    {
      key,
      now,
      set: [
        '#h = :entry',
        `#f = ${fence}`,
        `#fence = ${fence}`,
        '#used = if_not_exists(#used, :zero) + :weight',
        ...(limit === null ? [] : ['#last_limit = :limit']),
      ],
      remove: removed(ended, name),
      condition: all(hasRoom(room + freed), isNotRemembered(name), ...entryIsFree, ...stillStand(ended)),
      names: {
        ...attributesOf(name),
        ...namesOf(ended, name),
        '#fence': 'fence',
        '#used': 'used',
        ...(limit !== null && { '#last_limit': 'last_limit' }),
      },
      values: {
        ':entry': entryItem(entry),
        ':first': integer(now),
        ':one': integer(1),
        ':zero': integer(0),
        ':weight': integer(weight - freed),
        ...(limit !== null && { ':limit': integer(limit) }),
      },
    },
    call,
  );
}

/** Ends expired permits and grants none. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
function end(
  dependencies: PoolDependencies,
  { key, ended, now }: Ending & { key: string },
  call: Call,
): Promise<Written> {
  return updatePool(
    dependencies,
    {
      key,
      now,
      set: ['#used = #used - :freed'],
      remove: removed(ended),
      condition: all(hasUsed, ...stillStand(ended)),
      names: { ...namesOf(ended), '#used': 'used' },
      values: { ':freed': integer(weightOf(ended)) },
    },
    call,
  );
}

/** @param except whose entry is written anew */
const removed = (ended: readonly PoolEntry[], except?: string): string[] =>
  ended.flatMap(({ name }, nth) => (name === except ? [] : [`#h${nth}`, `#f${nth}`]));

const namesOf = (ended: readonly PoolEntry[], except?: string): Record<string, string> =>
  Object.fromEntries(ended.flatMap(({ name }, nth) => (name === except ? [] : [[`#f${nth}`, `f${name}`]])));
