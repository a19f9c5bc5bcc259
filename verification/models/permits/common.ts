import type { Config, Item } from '../engine/types.ts';
import * as w from './writes.ts';

/** What a call of acquire or heartbeat answers. */
export interface Answer {
  proof: w.Proof;
  fence: number;
  remaining: number;
  repeated: boolean;
  /** From its call on until its last write. The permit counts from there. */
  waited: number;
  /** Whether this call claimed it. */
  claimed?: boolean;
}

export function answerOf(
  record: Item,
  { key, name }: { key: string; name: string },
  now: number,
  repeated: boolean,
): Answer {
  const entry = w.entryOf(record, name) ?? {};
  const fence = record[`f:${name}`];
  const proof = { key, name, leaseId: entry.i };
  return { proof, fence, remaining: Math.max(0, entry.e - now), repeated, waited: 0 };
}

/** A third-party client has the key alone. */
export function weightInUse(record: Item, now: number, config: Config): number {
  if (!w.isThirdParty(record)) return record.used ?? 0;
  const until = (record.lease_expiry + 1) * config.second + (config.bugs?.noSkew ? 0 : config.skew);
  return until > now && !config.bugs?.thirdPartyUnseen ? w.EXCLUSIVE_WEIGHT : 0;
}

/** The expired holders that have to go. @returns undefined where there is no room without them either */
export function toEnd(record: Item, { name, room }: w.Asked, now: number, config: Config): w.Holder[] | undefined {
  const cut = now - (config.bugs?.noSkew ? 0 : config.skew);
  const expired = w.holdersOf(record).filter(({ e }) => e < cut);
  const own = expired.filter((one) => one.name === name);
  if (own.length === 0 && w.entryOf(record, name)) return undefined; // its margin is not over
  const others = expired.filter((one) => one.name !== name).sort((one, other) => one.e - other.e);
  const ended = own;
  const used = weightInUse(record, now, config);
  for (const one of others) if (used - w.weightOf(ended) > room) ended.push(one);
  return used - w.weightOf(ended) > room ? undefined : ended;
}
