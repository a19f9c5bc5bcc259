import { expect, it } from 'vitest';
import { get, post, throughTask } from '../support/stack/adapters.ts';
import { onceWorld } from '../support/worlds/once.ts';

const { handlers } = await onceWorld();
const { onceBegin, onceComplete, onceForget, readOnce, heartbeat, release, breakLease } = handlers;

it('once answers every outcome with HTTP 200', async () => {
  const asked = { key: 'http', holder: 'h', slot: '1' };
  const run = await post(onceBegin, asked);
  expect(run).toMatchObject({ status: 200, body: { outcome: 'run' } });
  const { leaseId, fence } = run.body;
  expect(await post(heartbeat, { key: 'http', leaseId })).toMatchObject({ status: 200, body: { fence } });
  expect(await post(onceBegin, { ...asked, holder: 'other', waitSeconds: 1 })).toMatchObject({
    ...{ status: 409, body: { code: 'LeaseHeld', key: 'http' } },
  });
  expect(await post(onceComplete, { key: 'http', leaseId, result: 1 })).toMatchObject({ status: 200 });
  expect(await post(onceBegin, asked)).toMatchObject({ status: 200, body: { outcome: 'done', result: 1 } });
  expect(await post(onceBegin, { ...asked, slot: '0' })).toMatchObject({
    ...{ status: 200, body: { outcome: 'superseded' } },
  });
  expect(await post(onceForget, { key: 'http', fence })).toMatchObject({ status: 200, body: { forgotten: true } });
  expect(await get(readOnce, { key: 'http' })).toMatchObject({ status: 200, body: { done: null } });
  expect(await get(readOnce, {})).toMatchObject({ status: 200, body: { keys: [{ key: 'http' }], nextCursor: null } });
});

it('a refused once call with per names its slot in retryWith', async () => {
  const asked = { key: 'waits', holder: 'h', per: '1d' };
  await post(onceBegin, asked);
  const { body } = await post(onceBegin, { ...asked, holder: 'other' });
  expect(body).toMatchObject({ code: 'LeaseHeld', retryWith: { slot: '2026-01-01' } });
  expect((await post(onceBegin, { ...asked, holder: 'other', ...(body.retryWith as object) })).body.code).toBe(
    'LeaseHeld',
  );
  const { retryWith } = (await post(onceBegin, { key: 'waits', holder: 'third', slot: '1' })).body;
  expect(retryWith, 'a slot that the caller has named').toBeUndefined();
});

it('once answers a task with the result itself', async () => {
  const { body } = await throughTask(onceBegin, { key: 'task', holder: 'h', per: '1d' });
  expect(body).toMatchObject({ outcome: 'run', slot: '2026-01-01' });
  expect((await throughTask(release, { key: 'task', leaseId: body.leaseId })).body).toEqual({
    ...{ key: 'task', released: true },
  });
  const again = (await throughTask(onceBegin, { key: 'task', holder: 'h', per: '1d' })).body;
  const broken = await throughTask(breakLease, { key: 'task', fence: again.fence, kind: 'once' });
  expect(broken.body).toMatchObject({ key: 'task', broken: true, ended: true });
  expect((await throughTask(onceComplete, { key: 'task', leaseId: again.leaseId })).body).toMatchObject({
    ...{ completed: false, reason: 'broken' },
  });
});

it.each([
  [{ slot: '1', per: '1d' }, 'slot', 'cannot be combined with per, except for the slot that retryWith gave you'],
  [
    { slot: '2026-01-02', per: '2d' },
    'slot',
    'cannot be combined with per, except for the slot that retryWith gave you',
  ],
  [
    { slot: '2026-01-02T00:00:00Z', per: '1d' },
    'slot',
    'cannot be combined with per, except for the slot that retryWith gave you',
  ],
  [
    { slot: '2026-11-23', per: '1w' },
    'slot',
    'cannot be combined with per, except for the slot that retryWith gave you',
  ],
  [{ per: '367d' }, 'per', 'must be a period such as 15m, 1h, 1d or 1w, of at most 366 days'],
  [{ per: '0h' }, 'per', 'must be a period such as 15m, 1h, 1d or 1w, of at most 366 days'],
  [{ per: '7d' }, 'per', 'must be 1w: a week begins on Monday'],
  [{ per: '1d', zone: 'Europe/Berln' }, 'zone', 'must be the IANA name of a time zone, such as Europe/Berlin'],
  [{ per: '1d', zone: '+01:00' }, 'zone', 'must be the IANA name of a time zone, such as Europe/Berlin'],
  [{ slot: '1', zone: 'Europe/Berlin' }, 'zone', 'needs a per of whole days or weeks'],
  [
    { per: '1d', keepSeconds: 100_000 },
    'keepSeconds',
    'must be at least 172800: the ttlSeconds, and two periods of per',
  ],
  [
    { ttlSeconds: 600, keepSeconds: 599 },
    'keepSeconds',
    'must be at least 600: the ttlSeconds, and two periods of per',
  ],
  [{ key: 'k'.repeat(1011) }, 'key', 'must be at most 1,010 bytes of UTF-8'],
  [{ key: 'holdfast:x' }, 'key', "must not begin with holdfast:, which is the service's own"],
  [{ slot: '' }, 'slot', 'must not be empty'],
  [{ inputHash: 'h'.repeat(129) }, 'inputHash', 'must be at most 128 bytes of UTF-8'],
  [
    { execution: 'arn:aws:lambda:x' },
    'execution',
    'must be the ARN of an execution of a Standard workflow or of a durable function',
  ],
  [{ result: 1 }, 'result', 'is not a known field'],
])('once refuses %j, and names the field', async (wrong, path, message) => {
  const { body } = await post(onceBegin, { key: 'wrong', holder: 'h', ...wrong });
  expect(body.issues).toEqual([{ path, message }]);
});

it('once refuses a key together with a prefix or a cursor', async () => {
  const { body } = await get(readOnce, { key: 'k', prefix: 'p' });
  expect(body.issues).toEqual([{ path: 'prefix', message: 'cannot be combined with key' }]);
});
