import type { MiddlewareObj } from '@middy/core';
import type { Context } from 'aws-lambda';
import type { Measure } from '../aws/call.ts';
import type { ErrorCode } from '../errors.ts';

/** The fields in which the steps of a request pass data to each other. */
export interface Internal extends Record<string, unknown> {
  adapter: 'http' | 'task' | 'event-bridge' | 'sqs';
  namespace: string | undefined;
  /** The arrival of the request in epoch milliseconds. */
  arrivedAt: number;
  /** The arrival by performance.now(). */
  startedAt: number;
  /** Errors that count as success for EventBridge. */
  accepts?: readonly ErrorCode[];
  /** The values that the call has measured. Absent if it has measured none. */
  measured?: Partial<Record<Measure, number[]>>;
  /** The payload after validation. */
  input?: unknown;
}

export type Middleware = MiddlewareObj<unknown, unknown, Error, Context, Internal>;
