import { lost, NOW, write } from '../queue-model/common.ts';
import { type Config, type Item, type Op, Refused, type Steps } from '../queue-model/types.ts';
import * as w from './writes.ts';

const MOST_TRIES = 5;

/** What a call of acquire or heartbeat answers. */
export interface Answer {
  proof: w.Proof;
  fence: number;
  remaining: number;
  repeated: boolean;
}

function answerOf(record: Item, { key, name }: { key: string; name: string }, now: number, repeated: boolean): Answer {
  const entry = w.entryOf(record, name) ?? {};
  const fence = record[`f:${name}`];
  const proof = { key, name, leaseId: entry.i, slot: fence % w.RING };
  return { proof, fence, remaining: Math.max(0, entry.e - now), repeated };
}

const held = () => new Refused('LeaseHeld');
const usedOf = (record: Item): number => record.used ?? 0;

/** pools.md#acquire. @throws Refused LeaseHeld, LeaseLost */
export function* acquire(asked: w.Asked, config: Config): Steps<Answer> {
  let ended: w.Holder[] = [];
  for (let tries = 1; ; tries++) {
    const now: number = yield NOW;
    const fresh = { ...asked, leaseId: config.uuid(), version: config.uuid() };
    const { won, standing } = yield* write(w.grant(fresh, ended, now, config));
    const own = w.entryOf(standing, asked.name);
    if (won) return answerOf(standing, asked, yield NOW, false);
    if (own && own.e > now) return answerOf(standing, asked, yield NOW, own.i !== fresh.leaseId);
    const how = own ? undefined : w.ending(standing, asked.name);
    if (how) throw lost(how);
    const room = yield* makeRoom(standing, asked, config);
    if (!room || tries === MOST_TRIES) throw held();
    ended = room;
  }
}

/**
 * pools.md#take-over: the expired holders that have to go, those that expired first, as few as make room. Where they are too many for one
 * write, the first of them go in writes of their own.
 * @returns undefined where there is no room without them either
 */
function* makeRoom(record: Item, asked: w.Asked, config: Config): Steps<w.Holder[] | undefined> {
  let standing = record;
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const now: number = yield NOW;
    const ended = toEnd(standing, asked, now, config);
    if (!ended || ended.length <= w.MOST_ENDED) return ended;
    if (config.bugs?.evictOnce) return undefined;
    ({ standing } = yield* write(w.end(asked.key, ended.slice(0, w.MOST_ENDED), now, config)));
  }
  return undefined;
}

function toEnd(record: Item, { name, room }: w.Asked, now: number, config: Config): w.Holder[] | undefined {
  const cut = now - (config.bugs?.noSkew ? 0 : config.skew);
  const expired = w.holdersOf(record).filter(({ e }) => e < cut);
  const own = expired.filter((one) => one.name === name);
  if (own.length === 0 && w.entryOf(record, name)) return undefined; // its margin is not over
  const others = expired.filter((one) => one.name !== name).sort((one, other) => one.e - other.e);
  const ended = own;
  for (const one of others) if (usedOf(record) - w.weightOf(ended) > room) ended.push(one);
  return usedOf(record) - w.weightOf(ended) > room ? undefined : ended;
}

/** pools.md#wait: looks with reads that may be old, and tries again. */
export function* wait(asked: w.Asked, until: number, config: Config): Steps<Answer> {
  for (;;)
    try {
      return yield* acquire(asked, config);
    } catch (error) {
      if (!(error instanceof Refused) || error.code !== 'LeaseHeld') throw error;
      if ((yield NOW) >= until) throw error;
      yield* untilThereIsRoom(asked, until, config);
    }
}

function* untilThereIsRoom(asked: w.Asked, until: number, config: Config): Steps<void> {
  for (;;) {
    yield { op: 'sleep', ms: config.lookNext };
    const now: number = yield NOW;
    const record: Item = yield { op: 'look', key: asked.key };
    const own = w.entryOf(record, asked.name);
    if (now >= until || (own && own.e > now) || toEnd(record, asked, now, config)) return;
  }
}

/** pools.md#heartbeat. @throws Refused LeaseLost */
export function* heartbeat(proof: w.Proof, config: Config): Steps<Answer> {
  const { standing } = yield* write(w.heartbeat(proof, config.uuid(), yield NOW, config));
  if (w.entryOf(standing, proof.name)?.i === proof.leaseId) return answerOf(standing, proof, yield NOW, false);
  throw lost(w.ending(standing, proof.name) ?? 'unknown');
}

/** pools.md#release. @returns whether it is given back, by this call or an earlier try */
export function* release(proof: w.Proof, config: Config): Steps<boolean> {
  const { won, standing } = yield* write(w.giveBack(proof, undefined, yield NOW, config));
  return won || (w.entryOf(standing, proof.name) === undefined && w.ending(standing, proof.name) === 'released');
}

/** pools.md#break, of the permit with a fence. @returns whether it is broken */
export function* breakPermit(key: string, fence: number, config: Config): Steps<boolean> {
  let record: Item = yield { op: 'get', key } satisfies Op;
  for (;;) {
    const slot = fence % w.RING;
    if (record[`b${slot}`] === fence) return true;
    const holder = w.holdersOf(record).find((one) => one.fence === fence);
    if (!holder) return false;
    const proof = { key, name: holder.name, leaseId: holder.i, slot };
    const { won, standing } = yield* write(w.giveBack(proof, fence, yield NOW, config));
    if (won) return true;
    record = standing;
  }
}
