import type { MiddlewareObj } from '@middy/core';
import type { Context } from 'aws-lambda';
import type { Measure } from '../aws/call.ts';
import type { ErrorCode } from '../errors.ts';

/** The fields by which the middlewares pass data to each other on a request. */
export interface Internal extends Record<string, unknown> {
  adapter: 'http' | 'task' | 'event-bridge' | 'sqs';
  /** The caller's namespace. */
  namespace: string | undefined;
  /** Epoch milliseconds. */
  arrivedAt: number;
  /** From performance.now(). */
  startedAt: number;
  /** Errors that count as success for the sender of the event. */
  accepts?: readonly ErrorCode[];
  /** The measures of the call; absent if there are none. */
  measured?: Partial<Record<Measure, number[]>>;
  /** The payload after validation; absent before. */
  input?: unknown;
}

export type Middleware = MiddlewareObj<unknown, unknown, Error, Context, Internal>;
