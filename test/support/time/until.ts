import { expect, vi } from 'vitest';

type Poll<T> = ReturnType<typeof expect.poll<T>>;

/** The timeout of `expect.poll` in vitest.config.ts, for the same reason. */
const PATIENCE = { timeout: 120_000, interval: 10 };

/**
 * `expect.poll` for tests that run concurrently. Vitest ties `expect.poll` itself to the only running test.
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
