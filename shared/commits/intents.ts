import type { Call } from '../aws/call.ts';
import type { CommitRequest } from './request.ts';

/**
 * The right to send the write of a commit, as far as a protocol has one; it excludes other clients only. `blocked`:
 * another client's record is in the way until the instant `until`. `lost`: another writer was quicker; look again, and
 * if `underWay`, not before that writer had time to write.
 */
export type Claim =
  | {
      state: 'won';
      generation?: number;
      /** No try of the write may be sent after this instant. */
      sendBefore: number;
      /** Tells others, after a definite failure, that there is nothing to wait for. */
      abandon(): Promise<void>;
    }
  | { state: 'lost'; underWay: boolean }
  | { state: 'blocked'; generation: number; until: number };

/** The claims of one commit call. */
export interface Claims {
  /** Whether the protocol looks at the object before the first write. */
  looksFirst: boolean;
  claim(call: Call): Promise<Claim>;
  /** Whether there is a sign that the commit was tried before this call. */
  triedBefore(call: Call): Promise<boolean>;
}

export type Claimant = (request: CommitRequest) => Claims;
