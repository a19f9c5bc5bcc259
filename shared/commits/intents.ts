import type { Call } from '../aws/call.ts';

/** The right to send the write of a commit. It keeps only other clients out; calls of this service may take it over. */
export interface WonIntent {
  won: true;
  generation?: number;
  /** No try of the write may be sent after this time, in epoch milliseconds. */
  sendBefore: number;
  /** Call it if the write has certainly failed, so that other calls do not wait for it. */
  abandon(): Promise<void>;
}

/** Another writer was faster. The call must read the object again. */
export interface LostIntent {
  won: false;
  /** Whether the other writer probably still writes, so that the call should wait a little before it reads again. */
  underWay: boolean;
  obstacle?: undefined;
}

/** The record of another client, which must be left alone until a time in epoch milliseconds. */
export interface Obstacle {
  generation: number;
  until: number;
}

export type Intent = WonIntent | LostIntent | { won: false; obstacle: Obstacle };

/** The intents of one call. Each commit protocol implements them. */
export interface Intents {
  /** Whether the call reads the object before its first write. */
  readonly readsFirst: boolean;
  /** Announces the commit to other writers. @throws HoldfastError Throttled, Unavailable, OutcomeUnknown */
  declare(call: Call): Promise<Intent>;
  /** Whether an earlier call may have tried this commit. @throws HoldfastError Throttled, Unavailable */
  triedBefore(call: Call): Promise<boolean>;
}
