import { describe, expect, it } from 'vitest';
import { failure, leaseWorld } from './support/leases.ts';

const world = await leaseWorld();
const { acquire, clock, requests } = world;

describe('acquire', () => {
  it('grants a free key with one request', async () => {
    requests.sent.length = 0;
    const grant = await acquire({ key: 'free', ttlSeconds: 30, data: { run: 7 } });
    expect(requests.sent).toEqual(['PutItem']);
    expect(grant).toMatchObject({
      key: 'free',
      holder: 'tester',
      fence: clock.now(),
      acquiredAt: '2026-01-01T00:00:00.123Z',
      expiresAt: '2026-01-01T00:00:30.123Z',
      remainingMs: 30_000,
      waitedMs: 0,
      repeated: false,
      data: { run: 7 },
    });
  });

  it('tells who holds a key, from the same one request', async () => {
    const { fence, expiresAt } = await acquire({ key: 'held', holder: 'first', ttlSeconds: 10 });
    clock.advance(4000);
    requests.sent.length = 0;
    const { code, context } = await failure(acquire({ key: 'held', holder: 'second' }));
    expect(requests.sent).toEqual(['PutItem']);
    expect(code).toBe('LeaseHeld');
    expect(context).toEqual({ key: 'held', holder: 'first', fence, expiresAt, retryAfterMs: 6000 + 500 + 1 });
  });
});
