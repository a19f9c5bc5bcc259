import { type HeldError, isSkipped, type LambdaContext } from './handler-lease.ts';
import { isHeld } from './index.ts';

/**
 * What a wrapper does if the key is held, if its `rates` do not allow a start in time, or if too little time is left: `throw` the error (the default), `skip`
 * the handler and answer `undefined`, or answer with the result of a function, such as `conflict()`.
 */
export type OnHeld<Event> = 'throw' | 'skip' | ((error: HeldError, event: Event, context: never) => unknown);

/** What a wrapper answers if the handler did not run. */
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
 * For `onHeld` of an HTTP handler: answers 409 with `retry-after`, in seconds. The response does not name the holder, because it may go to strangers.
 * @param none is never passed: it is here so that `onHeld: conflict`, without the parentheses, does not compile
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

/** Checks an option that a program without types may have set wrong. @throws TypeError if it is not valid */
export function assertOnHeld(onHeld: unknown): void {
  if (onHeld !== undefined && onHeld !== 'throw' && onHeld !== 'skip' && typeof onHeld !== 'function')
    throw new TypeError(`onHeld must be throw, skip or a function, not ${onHeld}`);
}

/** What a wrapper answers if the key was not granted. @throws the error, unless `onHeld` handles it, or a superseded event counts as done */
export async function notGranted(
  { onHeld, onSuperseded }: { onHeld: OnHeld<never> | undefined; onSuperseded: 'skip' | 'throw' | undefined },
  error: unknown,
  [event, context]: [unknown, LambdaContext],
): Promise<unknown> {
  if (isSkipped({ onSuperseded }, error)) return undefined;
  if (!isHeld(error) || onHeld === undefined || onHeld === 'throw') throw error;
  return onHeld === 'skip' ? undefined : onHeld(error, event as never, context as never);
}
