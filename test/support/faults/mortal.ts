import { AsyncLocalStorage } from 'node:async_hooks';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';

interface Life {
  callsLeft: number;
  /** The commands that were sent, in order. */
  sent: string[];
}

const lives = new AsyncLocalStorage<Life>();

/** Lets invocations that use the client exit (see `exitingAfter`). */
export function mortal(client: { middlewareStack: unknown }): void {
  const stack = client.middlewareStack as DynamoDBClient['middlewareStack'];
  stack.add(
    (next, context) => async (args) => {
      const life = lives.getStore();
      if (!life) return next(args);
      if (life.callsLeft <= 0) throw new Error('this invocation has exited');
      life.callsLeft--;
      life.sent.push(String(context.commandName).replace(/Command$/, ''));
      try {
        return await next(args);
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: an invocation that has exited does not learn its answer or error
        if (life.callsLeft === 0) throw new Error('this invocation exits here');
      }
    },
    // This wraps the step that reads the answer, because an unread answer would hold its connection.
    { step: 'finalizeRequest', priority: 'low', name: 'mortal' },
  );
}

/**
 * Runs an invocation that exits after its `calls`th request has taken effect, and before the answer arrives.
 * @returns the commands that it sent, and whether it ended before it would have exited
 */
export async function exitingAfter(calls: number, invocation: () => Promise<unknown>) {
  const life: Life = { callsLeft: calls, sent: [] };
  await lives.run(life, () => invocation().catch(() => {}));
  return { sent: life.sent, survived: life.callsLeft > 0 };
}

interface Steps {
  /** How many requests the invocation has sent. */
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
 * Runs an invocation, and all of `what` before its `at`th request, counted from 0.
 * @returns false if the invocation had fewer requests, so that `what` did not run
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
