import type { Fields, Json, Outcome, Row, Step } from './row.ts';

/** The call of a row, as a client plays it. Times are in milliseconds, as in the row. */
export interface Call extends Pick<Row, 'call' | 'random'> {
  key: string;
  options: Fields;
  client: Exclude<Row['client'], undefined>;
  endpoint: string;
  /** Whether the work waits for steps. Otherwise it returns `done` at once. */
  waits: boolean;
}

/** How a clock moves: both clocks of a running process, or both while it is paused and no timer fires; or only the wall clock. */
export type Movement = 'runs' | 'paused' | 'wall';

/** What a client reports: the result of a step, an event, or the outcome of the call. */
export type Report = { step: number; gave: Json } | { event: Fields } | { outcome: Outcome };

/** A client that plays a row on clocks of the test. */
export interface Player {
  /** The reports of the client since the row began. */
  readonly reports: Report[];
  begin(call: Call): Promise<void>;
  /** Hands a step to the work, or to the caller. */
  act(step: Step, index: number): Promise<void>;
  move(ms: number, how: Movement): Promise<void>;
  /** Whether the client does nothing until an answer comes or a clock moves. @param open how many requests the proxy has not answered */
  isIdle(open: number): Promise<boolean>;
  /** Milliseconds until the client's next timer. */
  nextMs(): Promise<number>;
  /** Ends a call that is still running. */
  end(): Promise<void>;
}
