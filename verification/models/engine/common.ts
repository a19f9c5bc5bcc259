import { type Config, type Item, type Op, Refused, type Steps } from './types.ts';

export const NOW: Op = { op: 'now' };
export const TRUE_TIME: Op = { op: 'true' };
export const sleep = (ms: number): Op => ({ op: 'sleep', ms });
/** The record is looked at again, once the call that was granted it must have claimed it. */
export const repairLater = (key: string, config: Config): Op => ({
  op: 'later',
  key,
  ms: config.window + config.skew + 2,
});

export interface Written {
  won: boolean;
  standing: Item;
  /** An earlier try of the SDK's got no answer. */
  unanswered: boolean;
}

/** One conditional write: it answers with the record as it is now, or as it kept the write from happening. */
export function* write(op: Op): Steps<Written> {
  const { won, item, old, unanswered } = yield op;
  return { won, standing: (won ? item : old) ?? { key: op.key }, unanswered };
}

export const lost = (reason: string) => new Refused('LeaseLost', { reason });
export const ticketName = (now: number, uuid: string): string => `${String(now).padStart(9, '0')}-${uuid}`;
