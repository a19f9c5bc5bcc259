import { NOW, write } from '../engine/common.ts';
import { deleteRow, isCall } from '../engine/rows.ts';
import type { Config, Item, Op, Steps } from '../engine/types.ts';
import { isLease } from '../line/kinds.ts';
import { advance } from './line.ts';
import * as w from './writes.ts';

/** pools.md#release. @returns whether it is given back, by this call or an earlier try */
export function* release(proof: w.Proof, config: Config): Steps<boolean> {
  const { won, standing, unanswered } = yield* write(w.giveBack(proof, undefined, yield NOW, config));
  const isOver = w.ending(standing, proof.name) === 'released';
  // An earlier try may have died before it looked at the line.
  if (won || (unanswered && isOver)) yield* giveToLine(proof.key, standing, config);
  return won || (w.entryOf(standing, proof.name) === undefined && w.ending(standing, proof.name) === 'released');
}

/** Each call that ends a permit gives its room to the line. A failure after that does not concern the holder. */
function* giveToLine(key: string, standing: Item, config: Config): Steps<void> {
  if (standing.mark === undefined || isLease(standing) || config.bugs?.releaseIgnoresMark) return;
  yield* advance(key, standing, config);
}

/** Ends a permit that its caller will not use. */
export function* giveUp(proof: w.Proof, config: Config): Steps<void> {
  const { won, standing } = yield* write(w.giveBack(proof, undefined, yield NOW, config));
  if (won) yield* giveToLine(proof.key, standing, config);
}

/** pools.md#break, of the permit with a fence. @returns whether it is broken */
export function* breakPermit(key: string, fence: number, config: Config): Steps<boolean> {
  let record: Item = yield { op: 'get', key } satisfies Op;
  for (;;) {
    if (w.isBroken(record, fence)) return true;
    const holder = w.holdersOf(record).find((one) => one.fence === fence);
    if (!holder) return false;
    const proof = { key, name: holder.name, leaseId: holder.i };
    const { won, standing } = yield* write(w.giveBack(proof, fence, yield NOW, config));
    if (won) {
      yield* giveToLine(key, standing, config);
      return true;
    }
    record = standing;
  }
}

/** pools.md#break, with `wait`. @returns whether the permit is ending, or has ended */
export function* breakAndWait(key: string, fence: number, config: Config): Steps<boolean> {
  let record: Item = yield { op: 'get', key } satisfies Op;
  for (;;) {
    if (w.isBroken(record, fence)) return true;
    const holder = w.holdersOf(record).find((one) => one.fence === fence);
    if (!holder) return false;
    const now: number = yield NOW;
    const isHeld = holder.c === undefined && holder.e >= now - config.skew;
    if (isHeld && holder.s !== undefined) {
      yield* endUnnotified(key, holder, config);
      return true;
    }
    const proof = { key, name: holder.name, leaseId: holder.i };
    if (!isHeld) {
      if (yield* endSeen(key, holder, config)) return true;
      record = { key, ...((yield { op: 'get', key }) as Item) };
      continue;
    }
    record = (yield* write(w.markEnding(proof, config.uuid(), now, config))).standing;
  }
}

/** Under the version that was seen: its caller may have claimed the permit since, or its holder extended it. */
function* endSeen(key: string, { name, i: leaseId, v, fence }: w.Holder, config: Config): Steps<boolean> {
  const end = w.giveBack({ key, name, leaseId }, fence, yield NOW, config);
  const { won, standing } = yield* write({
    ...end,
    condition: `(${end.condition}) AND #h.v = :seen`,
    values: { ...end.values, ':seen': v },
  });
  if (won) yield* giveToLine(key, standing, config);
  return won;
}

/** The task of a permit that is ending may not have been notified. If the task takes the message, the permit ends at once. */
export function* endUnnotified(key: string, holder: w.Holder, config: Config): Steps<void> {
  const row: Item | undefined = holder.k === undefined ? undefined : yield { op: 'getRow', key, ticket: holder.k };
  if (!row || isCall(row)) return;
  const delivery = yield { op: 'tell', token: row.token, error: 'LeaseLost', key, cancelled: true } satisfies Op;
  if (delivery === 'unanswered') return;
  yield deleteRow(key, row.ticket);
  if (delivery === 'delivered' || config.bugs?.endingEndsNotified) yield* endSeen(key, holder, config);
}
