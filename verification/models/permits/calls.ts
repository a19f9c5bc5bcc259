import { lost, NOW, sleep, type Written, write } from '../engine/common.ts';
import { type Config, type Item, Refused, type Self, type Steps } from '../engine/types.ts';
import { changeKind } from '../keys/change.ts';
import { isLease } from '../line/kinds.ts';
import { type Answer, answerOf, toEnd } from './common.ts';
import { advance } from './line.ts';
import { claim, waitInLine } from './queue.ts';
import * as w from './writes.ts';

const MOST_TRIES = 5;

const held = () => new Refused('LeaseHeld');

/** pools.md#acquire. @throws Refused LeaseHeld, LeaseLost, WrongKind */
export function* acquire(asked: w.Asked, config: Config): Steps<Answer> {
  let ended: w.Holder[] = [];
  let lineSeenEmpty = false;
  let seen: Item | undefined;
  let over: Item | undefined;
  for (let tries = 1; ; tries++) {
    const now: number = yield NOW;
    const fresh = { ...asked, leaseId: config.uuid(), version: config.uuid() };
    const { won, standing }: Written = yield* write(w.grant([fresh], { ended, now, seen, over }, config));
    [seen, over] = [standing, undefined];
    if (!won && isLease(standing)) {
      if (tries === MOST_TRIES) throw held();
      over = yield* changeKind(asked.key, standing, config, { withPermit: true });
      seen = undefined;
      ended = [];
      continue;
    }
    const own = w.holderOf(standing, asked.name);
    if (won) return answerOf(standing, asked, yield NOW, false);
    if (own?.s !== undefined) throw lost('broken');
    if (own && (own.k !== undefined || own.c !== undefined)) {
      const repeated = yield* claim(asked, standing, undefined, config);
      if (repeated) return { ...repeated, waited: 0 };
    } else if (own && own.e > now) return answerOf(standing, asked, yield NOW, own.i !== fresh.leaseId);
    const how = own ? undefined : w.ending(standing, asked.name);
    if (how) throw lost(how);
    if (standing.mark !== undefined && !config.bugs?.barging) {
      if (lineSeenEmpty || !toEnd(standing, asked, yield NOW, config)) throw held();
      if ((yield* advance(asked.key, standing, config)).end !== 'empty') throw held();
      lineSeenEmpty = true;
      ended = [];
      continue;
    }
    const room = yield* makeRoom(standing, asked, config);
    if (!room || tries === MOST_TRIES) throw held();
    ended = room;
  }
}

/** The same with patience: in line, or in a race with all others (`fair: false`). */
export function* acquireOrWait(
  asked: w.Asked,
  { wait, races, before }: { wait: number; races: boolean; before: string | undefined },
  config: Config,
  self: Self,
): Steps<Answer> {
  const arrivedAt: number = yield NOW;
  const until = arrivedAt + wait;
  if (races) return yield* race(asked, until, config);
  for (let ticket = before; ; ticket = undefined)
    try {
      return yield* acquire(asked, config);
    } catch (error) {
      if (!(error instanceof Refused) || error.code !== 'LeaseHeld') throw error;
      const answer = yield* waitInLine(asked, { arrivedAt, until, before: ticket }, config, self);
      if (answer) return answer;
      // The record is of the other kind, so the call has left the line.
      if ((yield NOW) >= until) throw error;
      yield sleep(config.lookNext);
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
    ({ standing } = yield* write(w.end(asked.key, { ended: ended.slice(0, w.MOST_ENDED) }, config)));
  }
  return undefined;
}

/** pools.md#race: looks with reads that may be out of date, and tries again. */
function* race(asked: w.Asked, until: number, config: Config): Steps<Answer> {
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
  const entry = w.entryOf(standing, proof.name);
  const isOwn = entry?.i === proof.leaseId;
  if (isOwn && (entry.s === undefined || config.bugs?.endingBeaten)) return answerOf(standing, proof, yield NOW, false);
  throw lost(w.ending(standing, proof.name) ?? 'unknown');
}
