/** An instant relative to now, so that each mix can be explored to its end. */
export type Tick = number;

/** `R`: runs. `E`: ended, and its code with it. `S`: stopped, and its code may run on for the grace. */
export type Status = 'R' | 'E' | 'S';

interface Change {
  at: Tick;
  status: Status;
  /** When the execution ended, and when it was last redriven, by its own clock. */
  stop: Tick | undefined;
  redriven: Tick | undefined;
}

export interface Execution {
  runs: boolean;
  past: Change[];
  /** Whether its current run was answered with a grant. */
  believes: boolean;
  redrives: number;
  /** How often it was redriven and asked by another request since. */
  request: number;
  codeUntil: Tick;
}

interface Lease {
  holder: number | undefined;
  version: number;
  request: number;
  answeredAt: Tick;
  /** Undefined while bound. */
  expires: Tick | undefined;
  /** The execution that held the lease, while it goes on for its grace. */
  ended: number | undefined;
}

/** A pass or a look, which judges whether an execution has ended. Kinds 1 and 2 are the passes, and 3 is a look. */
export interface Judge {
  kind: 1 | 2 | 3;
  who: number;
  phase: 'ask' | 'write';
  seen: { version: number; answeredAt: Tick };
  said: Status | undefined;
  stop: Tick | undefined;
  redriven: Tick | undefined;
  /** The end that an event reports to the first pass. */
  event: { status: Status; stop: Tick } | undefined;
  at: Tick;
}

export interface Event {
  who: number;
  pass: 1 | 2;
  stop: Tick;
  status: Status;
  notBefore: Tick;
}

export const FAULTS = ['answer', 'event', 'twice', 'throttle', 'stale', 'late'] as const;
export type Fault = (typeof FAULTS)[number];

export interface State {
  executions: Execution[];
  lease: Lease;
  judges: Judge[];
  events: Event[];
  nextLook: Tick;
  faults: Record<Fault, number>;
  /** For how long the record has had the grant of an ended execution. */
  age: number;
}
