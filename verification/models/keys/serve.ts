import { NOW, write } from '../engine/common.ts';
import type { Config, Item, Steps } from '../engine/types.ts';
import * as leases from '../leases/hand-off.ts';
import { isLeased, takeoverAt } from '../leases/writes.ts';
import { isPool } from '../line/kinds.ts';
import * as permits from '../permits/line.ts';
import { end, holdersOf, MOST_ENDED } from '../permits/writes.ts';

const MOST_TRIES = 5;

/** Whether anybody may rely on a lease or a permit of the key. */
export const isHeld = (record: Item, now: number, config: Config): boolean =>
  isPool(record)
    ? holdersOf(record).some(({ e }) => e >= now - (config.bugs?.noSkew ? 0 : config.skew))
    : isLeased(record) && takeoverAt(record, config) > now;

/** Gives the key to its line, of whichever kind the first in it is. */
export function* serve(key: string, record: Item, config: Config): Steps<{ isEmpty: boolean; standing: Item }> {
  let standing = record;
  for (let changes = 0; changes < MOST_TRIES; changes++) {
    if (!isPool(standing) && isHeld(standing, yield NOW, config)) break;
    const served: { end: string; standing: Item } = isPool(standing)
      ? yield* permits.advance(key, standing, config)
      : yield* leases.handOff(key, standing, isLeased(standing) ? 'expired' : 'free', config);
    ({ standing } = served);
    if (served.end !== 'changed') return { isEmpty: served.end === 'empty', standing };
  }
  return { isEmpty: false, standing };
}

/** queue.md#hand-off, which goes on where the kind has changed for the first in line. */
export function* handOff(
  key: string,
  record: Item,
  how: leases.Ending,
  config: Config,
  passing: leases.Passing = {},
): Steps<leases.HandedOff> {
  const handed = yield* leases.handOff(key, record, how, config, passing);
  if (handed.end !== 'changed') return handed;
  return { ...handed, standing: (yield* serve(key, handed.standing, config)).standing };
}

/** pools.md#advance, likewise. */
export function* advance(key: string, record: Item, config: Config): Steps<permits.Advanced> {
  const advanced = yield* permits.advance(key, record, config);
  if (advanced.end !== 'changed') return advanced;
  return { ...advanced, standing: (yield* serve(key, advanced.standing, config)).standing };
}

/** kinds.md: a call meets a record of the other kind. It hands on to those who came before, and ends what is over. */
export function* vacate(key: string, record: Item, config: Config): Steps<{ isVacant: boolean; standing: Item }> {
  let standing = record;
  let lineSeenEmpty = false;
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const now: number = yield NOW;
    if (isHeld(standing, now, config)) break;
    // A grant that was not claimed leaves `claim_ttl_ms` on the free record.
    const isUnclaimed = isLeased(standing) && standing.claim_ttl_ms !== undefined;
    if (standing.waiters !== undefined || isUnclaimed) {
      if (lineSeenEmpty || config.bugs?.markDecides) break;
      const served = yield* serve(key, standing, config);
      ({ standing } = served);
      if (!served.isEmpty) break;
      lineSeenEmpty = true;
      continue;
    }
    const over = isPool(standing) ? holdersOf(standing) : [];
    if (over.length === 0) return { isVacant: true, standing };
    ({ standing } = yield* write(end(key, { ended: over.slice(0, MOST_ENDED), now }, config)));
  }
  return { isVacant: false, standing };
}
