import { HoldfastError } from '../errors.ts';
import type { Middleware } from './middleware.ts';

/** Leaves documented errors only: whatever else was thrown is a fault of ours, told as one and kept as the cause. */
export function failures(): Middleware {
  return {
    onError: (request) => {
      if (request.error instanceof HoldfastError) return;
      request.error = new HoldfastError(
        'Unavailable',
        'the service failed in a way it does not know; the log has the reason under the traceId',
        { retryAfterMs: 1000, cause: request.error },
      );
    },
  };
}
