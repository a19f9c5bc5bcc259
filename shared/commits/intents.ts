import type { Call } from '../aws/call.ts';

/** The right to send the write of a commit. It excludes other clients only. */
export interface WonIntent {
  won: true;
  generation?: number;
  /** No try of the write may be sent after this instant. */
  sendBefore: number;
  /** After a definite failure: other calls then need not wait for this write. */
  abandon(): Promise<void>;
}

/** Another writer was quicker. Look again, and if `underWay`, not before that writer had time to write. */
export interface LostIntent {
  won: false;
  underWay: boolean;
  obstacle?: undefined;
}

/** Another client's record is in the way until an instant. */
export interface Obstacle {
  generation: number;
  until: number;
}

export type Intent = WonIntent | LostIntent | { won: false; obstacle: Obstacle };

/** The intents of one commit call. */
export interface Intents {
  /** Whether the protocol looks at the object before the first write. */
  readonly readsFirst: boolean;
  /** @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
  declare(call: Call): Promise<Intent>;
  /** Whether there is a sign that the commit was tried before this call. @throws HoldfastError Throttled, Unavailable */
  triedBefore(call: Call): Promise<boolean>;
}
