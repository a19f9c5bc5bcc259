import { type HeldError, isSkipped, type LambdaContext } from './handler-lease.ts';
import { isHeld } from './index.ts';

/**
 * The action of a wrapper if the key is held, if its `rates` allow no start in time, or if too little time is left: `throw` the error (the default), `skip` the handler and resolve to
 * `undefined`, or answer with the result of a function.
 */
export type OnHeld<Event> = 'throw' | 'skip' | ((error: HeldError, event: Event, context: never) => unknown);

/** The result of a handler that did not run. */
export type Skipped<Hold> = Hold extends 'skip'
  ? undefined
  : Hold extends (...args: never[]) => infer Answer
    ? Awaited<Answer>
    : never;

interface ConflictResponse {
  statusCode: 409;
  headers: Record<string, string>;
  body: string;
}

/**
 * For `onHeld` of an HTTP handler: answers 409 with `retry-after`, in seconds. The response does not name the holder.
 * @param none takes no argument, so that `onHeld: conflict`, without the parentheses, does not compile
 * @throws TypeError if a program without types passes an argument
 * @example
 * export const handler = leased({ holdfast, key: (event: APIGatewayProxyEventV2) => `order/${event.pathParameters?.id}`, onHeld: conflict() })(work);
 */
export function conflict(none?: never): (error: HeldError) => ConflictResponse {
  if (none !== undefined) throw new TypeError('onHeld must be conflict(), not conflict');
  return ({ retryAfterMs = 0 }) => ({
    statusCode: 409,
    headers: {
      'content-type': 'application/problem+json',
      'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))),
    },
    body: JSON.stringify({ title: 'Conflict', status: 409 }),
  });
}

/** Checks an option that a program without types may set. @throws TypeError if the option is not valid */
export function assertOnHeld(onHeld: unknown): void {
  if (onHeld !== undefined && onHeld !== 'throw' && onHeld !== 'skip' && typeof onHeld !== 'function')
    throw new TypeError(`onHeld must be throw, skip or a function, not ${onHeld}`);
}

/** The result of a handler whose key was not granted. @throws the error, unless `onHeld` handles a HeldError, or a superseded event counts as done */
export async function notGranted(
  { onHeld, onSuperseded }: { onHeld: OnHeld<never> | undefined; onSuperseded: 'skip' | 'throw' | undefined },
  error: unknown,
  [event, context]: [unknown, LambdaContext],
): Promise<unknown> {
  if (isSkipped({ onSuperseded }, error)) return undefined;
  if (!isHeld(error) || onHeld === undefined || onHeld === 'throw') throw error;
  return onHeld === 'skip' ? undefined : onHeld(error, event as never, context as never);
}
