// biome-ignore lint/suspicious/noExplicitAny: an attribute may be of any type, as in the table
export type Item = Record<string, any>;

/** A request to a store or to time, as a step of the protocol yields it. */
export interface Op extends Item {
  op: string;
}

// biome-ignore lint/suspicious/noExplicitAny: what a step is answered depends on what it asked
export type Steps<T> = Generator<Op, T, any>;

export interface Condition {
  condition: string;
  values: Item;
}

/** What a party knows of the deployment. Times are in units of the model. */
export interface Config {
  skew: number;
  /** How long a grant to a caller that waits stays unclaimed. */
  window: number;
  /** How long a caller that was answered LeaseHeld keeps its place. */
  keep: number;
  retention: number;
  second: number;
  notifiedAfter: number;
  notifiedPast: number;
  fresh: number;
  lookNext: number;
  lookFar: number;
  rowEvery: number;
  /** How much later than the next in line the others hand a free lease on. */
  patience: number;
  /** Rules that are switched off. */
  bugs?: Record<string, boolean> | undefined;
  uuid: () => string;
}

/** A request, as a caller sends it. */
export interface Request {
  key: string;
  requestId: string;
  holder: string;
  principal?: string;
  execution?: string;
  ttl: number;
  wait: number;
  /** Asks again, and keeps its place. */
  ticket?: string | undefined;
}

/** What the world learns of a party on the way. */
export interface Self extends Item {
  row?: string;
  joined?: () => void;
}

export class Refused extends Error {
  readonly code: string;
  readonly reason: string | undefined;
  readonly ticket: string | undefined;

  constructor(code: string, { reason, ticket }: { reason?: string; ticket?: string } = {}) {
    super(code);
    this.code = code;
    this.reason = reason;
    this.ticket = ticket;
  }
}

export interface Task {
  token: string;
  state: 'waiting' | 'told' | 'failed';
  alive: boolean;
  request: Request;
  from: number;
  hold: number;
  error?: string | undefined;
  retried?: boolean;
  /** No message reaches it, as if its key of KMS denied the service access. */
  unreachable?: boolean | undefined;
}

export interface Party {
  id: number;
  name: string;
  offset: number;
  config: Config;
  self: Self;
  steps: Steps<unknown>;
  alive: boolean;
  pending?: (Op & { unanswered?: boolean; wakeAt?: number }) | undefined;
  history: string;
  readAt?: number;
  queried: number;
  spared?: boolean;
}

/** Something that must hold does not. */
export class Broken extends Error {}
