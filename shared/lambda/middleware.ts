import type { MiddlewareObj } from '@middy/core';
import type { Context } from 'aws-lambda';
import type { Measure } from '../aws/call.ts';
import type { ErrorCode } from '../errors.ts';

/** What our middlewares leave for each other on a request. */
export interface Internal extends Record<string, unknown> {
  adapter: 'http' | 'task' | 'event-bridge' | 'sqs';
  /** Of the caller. */
  namespace: string | undefined;
  /** Epoch milliseconds. */
  arrivedAt: number;
  /** From performance.now(). */
  startedAt: number;
  /** Errors that the event's sender takes for success. */
  accepts?: readonly ErrorCode[];
  /** What the call has measured; absent where it has nothing. */
  measured?: Partial<Record<Measure, number[]>>;
  /** The payload as the schema made it; absent until it is valid. */
  input?: unknown;
}

export type Middleware = MiddlewareObj<unknown, unknown, Error, Context, Internal>;
