import { expect, vi } from 'vitest';

type Poll<T> = ReturnType<typeof expect.poll<T>>;

/** As long as vitest.config.ts lets `expect.poll` wait, and with the same reason. */
const PATIENCE = { timeout: 120_000, interval: 10 };

/**
 * `expect.poll`, also for tests that run at once: that one belongs to the only test that runs.
 * @example await until(() => stdout()).toContain('on')
 */
export const until = <T>(ask: () => T): Poll<T> =>
  new Proxy({} as Poll<T>, {
    get:
      (_, matcher: string) =>
      (...args: unknown[]) =>
        vi.waitFor(async () => {
          const matchers = expect(await ask()) as unknown as Record<string, (...args: unknown[]) => void>;
          matchers[matcher]?.(...args);
        }, PATIENCE),
  });
