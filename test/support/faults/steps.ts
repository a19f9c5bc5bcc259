import { AsyncLocalStorage } from 'node:async_hooks';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

interface Steps {
  /** How many requests were sent. */
  sent: number;
  at: number;
  what: () => Promise<unknown>;
}

const running = new AsyncLocalStorage<Steps>();

/** Makes each request of a client a step of the invocations that `before` runs. */
export function stepped(client: { middlewareStack: unknown }): void {
  const stack = client.middlewareStack as DynamoDBClient['middlewareStack'];
  stack.add(
    (next) => async (args) => {
      const steps = running.getStore();
      if (steps && steps.sent++ === steps.at) await running.exit(steps.what);
      return next(args);
    },
    { step: 'finalizeRequest', priority: 'low', name: 'steps' },
  );
}

/**
 * Runs an invocation, and something else in whole before its `at`th request, from 0.
 * @returns whether the invocation had that many requests: if not, the other thing did not happen
 */
export async function before(
  at: number,
  what: () => Promise<unknown>,
  invocation: () => Promise<unknown>,
): Promise<boolean> {
  const steps: Steps = { sent: 0, at, what };
  await running.run(steps, invocation);
  return steps.sent > at;
}
