import { AsyncLocalStorage } from 'node:async_hooks';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

interface Life {
  callsLeft: number;
  /** What was sent, in order. */
  sent: string[];
}

const lives = new AsyncLocalStorage<Life>();

/** Lets invocations that use the client die (see `dyingAfter`). */
export function mortal(client: { middlewareStack: unknown }): void {
  const stack = client.middlewareStack as DynamoDBClient['middlewareStack'];
  stack.add(
    (next, context) => async (args) => {
      const life = lives.getStore();
      if (!life) return next(args);
      if (life.callsLeft <= 0) throw new Error('this invocation is dead');
      life.callsLeft--;
      life.sent.push(String(context.commandName).replace(/Command$/, ''));
      try {
        return await next(args);
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: the dead learn nothing of what came back, be it an error
        if (life.callsLeft === 0) throw new Error('this invocation dies here');
      }
    },
    // This is outside of the step that reads the answer, because unread answers would hold their connections.
    { step: 'finalizeRequest', priority: 'low', name: 'mortal' },
  );
}

/**
 * An invocation that dies after its `calls`th request has taken effect, before it hears of that.
 * @returns what it had sent, and whether it lived to its end
 */
export async function dyingAfter(calls: number, invocation: () => Promise<unknown>) {
  const life: Life = { callsLeft: calls, sent: [] };
  await lives.run(life, () => invocation().catch(() => {}));
  return { sent: life.sent, survived: life.callsLeft > 0 };
}

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
