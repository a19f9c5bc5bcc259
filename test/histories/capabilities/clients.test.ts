import { expect, it } from 'vitest';
import { clients } from '../../../verification/histories/capabilities/clients.ts';
import { at, entry, facts, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const key = 'w-y0';
const lease = 'e.one';
const HELD = 'a client holds a lease only while an answer says so';

const grant = (times: [number, number], remainingMs: number, more: object = {}) =>
  entry('acquire', { key, holder: 'h', requestId: 'h', ttlSeconds: 10, ...more }, times, 'ok', {
    ...{
      leaseId: lease,
      fence: 1,
      remainingMs,
      expiresAt: at(times[0] + remainingMs),
      repeated: false,
      previous: null,
    },
  });
const beat = (times: [number, number], remainingMs: number) =>
  entry('heartbeat', { key, leaseId: lease }, times, 'ok', { leaseId: lease, fence: 1, remainingMs });
const holds = (ms: number, isHeld = true, own = lease) =>
  entry('holds', { key, lease: own }, [ms, ms], 'ok', { isHeld, reason: null });

const isHeld = (...entries: Entry[]) => !promises(clients.check(entries, facts)).includes(HELD);

it('a client may hold its lease until its end, and longer after a heartbeat', () => {
  expect(isHeld(grant([0, 20], 9990), holds(20), holds(9989))).toBe(true);
  expect(isHeld(grant([0, 20], 9990), beat([3000, 3020], 9990), holds(12_989))).toBe(true);
  expect(isHeld(grant([0, 20], 9990), holds(9991, false))).toBe(true);
});

it('the checker finds a client that counts on its lease past its expiry', () => {
  expect(isHeld(grant([0, 20], 9990), holds(9990))).toBe(false);
  expect(isHeld(grant([0, 20], 9990), beat([3000, 3020], 9990), holds(12_991))).toBe(false);
});

it('the checker finds a client that holds a lease that it was not granted', () => {
  expect(isHeld(grant([0, 20], 9990), holds(10))).toBe(false);
  expect(isHeld(grant([0, 20], 9990), holds(30, true, 'e.other'))).toBe(false);
});
