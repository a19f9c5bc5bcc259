import { NOW, write } from '../queue-model/common.ts';
import type { Config, Item, Op, Steps } from '../queue-model/types.ts';
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
  if (standing.waiters === undefined || config.bugs?.releaseIgnoresMark) return;
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
