import { HoldfastError } from '../errors.ts';
import type { Middleware } from './middleware.ts';

/**
 * Turns an unexpected exception, which is a fault of the service, into a documented error with the exception as its
 * cause.
 */
export function failures(): Middleware {
  return {
    onError: (request) => {
      if (request.error instanceof HoldfastError) return;
      request.error = new HoldfastError('Unavailable', 'the call failed unexpectedly: search the log for the traceId', {
        retryAfterMs: 1000,
        cause: request.error,
      });
    },
  };
}
