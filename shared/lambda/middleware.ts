import type { MiddlewareObj } from '@middy/core';
import type { Context } from 'aws-lambda';
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
  /** The payload as the schema made it; absent until it is valid. */
  input?: unknown;
}

export type Middleware = MiddlewareObj<unknown, unknown, Error, Context, Internal>;
