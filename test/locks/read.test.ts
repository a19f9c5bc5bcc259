import { expect, it } from 'vitest';
import { readOneKey } from '../../shared/locks/calls/read.ts';
import { call } from '../support/emulators/aws.ts';
import { documented } from '../support/stack/contract.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

/** The fields of an answer that are null or false for a key without a holder. */
const NO_TERMS = {
  ...{ acquiredAt: null, expiresAt: null, remainingMs: null, ttlSeconds: null, execution: null },
  ...{ inGrace: false, bound: false, ending: false, brokenAt: null, brokenBy: null, data: null },
};
const NOT_IN_LINE = { previous: null, hasRecord: true, waiting: 0 };
const SECRETS = ['leaseId', 'version', 'requestId', 'principal'];

const { acquire, release, heartbeat, putRaw, clock, requests, dependencies } = await leaseWorld();
const readKey = documented('readLeases', readOneKey(dependencies));
const read = (key: string, more: object = {}) => readKey({ key, ...more }, call());

it('a read of a key without a record shows it as free', async () => {
  expect(await read('never', { waiters: true })).toEqual({
    ...{ key: 'never', state: 'free', holder: null, fence: null, ...NO_TERMS },
    ...{ holders: [], used: 0, limit: null, limitBy: null, ...NOT_IN_LINE, hasRecord: false, waiters: [] },
  });
});

it('a read of a key shows its exclusive holder without secrets', async () => {
  const grant = await acquire({ key: 'k', holder: 'h', ttlSeconds: 2, data: { a: null } });
  const { fence, acquiredAt, expiresAt } = grant;
  requests.sent.length = 0;
  const held = await read('k');
  expect(requests.sent).toEqual(['GetItem']);
  const terms = { ...NO_TERMS, acquiredAt, expiresAt, remainingMs: 2000, ttlSeconds: 2, data: { a: null } };
  const shown = { state: 'held', holder: 'h', fence, ...terms };
  expect(held).toEqual({
    ...{ key: 'k', ...shown, holders: [{ ...shown, mode: 'exclusive', weight: 1 }] },
    ...{ used: 1, limit: null, limitBy: null, ...NOT_IN_LINE },
  });
  for (const secret of SECRETS) expect(held).not.toHaveProperty(secret);
  clock.advance(2000);
  const expired = { state: 'expired', remainingMs: 0, expiresAt };
  expect(await read('k')).toMatchObject({ ...expired, holders: [expired], used: 1 });
  await heartbeat(grant);
  expect(await read('k')).toMatchObject({ state: 'held', fence });
  await release(grant);
  expect(await read('k')).toEqual({
    ...{ key: 'k', state: 'released', holder: 'h', fence, ...NO_TERMS, acquiredAt, data: { a: null } },
    ...{ holders: [], used: 0, limit: null, limitBy: null, ...NOT_IN_LINE },
  });
});

it('a read of a key shows its shared holders, and which one ends first', async () => {
  const ask = (holder: string, ttlSeconds: number, more: object = {}) =>
    acquire({ key: 'render', holder, ttlSeconds, limit: 8, ...more });
  await ask('dead', 2);
  await ask('long', 600, { weight: 4 });
  const short = await ask('short', 60, { data: 'shown' });
  clock.advance(30_000);
  const view = await read('render');
  expect(view).toMatchObject({
    ...{ state: 'held', holder: 'short', fence: short.fence, remainingMs: 30_000, ttlSeconds: 60, data: 'shown' },
    ...{ used: 6, limit: 8, limitBy: 'short', previous: null, hasRecord: true },
  });
  expect(view.holders.map(({ holder, state, mode, weight }) => [holder, state, mode, weight])).toEqual([
    ['dead', 'expired', 'shared', 1],
    ['long', 'held', 'shared', 4],
    ['short', 'held', 'shared', 1],
  ]);
  clock.advance(600_000);
  expect(await read('render')).toMatchObject({ state: 'expired', holder: 'dead', remainingMs: 0 });
});

it('a read after the last shared holder shows the last fence and limit', async () => {
  const { fence, leaseId } = await acquire({ key: 'done', holder: 'last', limit: 2 });
  await release({ key: 'done', leaseId });
  expect(await read('done')).toEqual({
    ...{ key: 'done', state: 'free', holder: null, fence, ...NO_TERMS },
    ...{ holders: [], used: 0, limit: 2, limitBy: 'last', ...NOT_IN_LINE },
  });
  const alone = await acquire({ key: 'done', holder: 'alone' });
  expect(await read('done')).toMatchObject({ holder: 'alone', used: 1, limit: null, limitBy: null });
  await release(alone);
  expect(await read('done')).toMatchObject({ state: 'released', holder: 'alone', used: 0, limit: null });
});

it('a read of a key shows the lease of a third-party client', async () => {
  const second = Math.floor(clock.now() / 1000) + 60;
  await putRaw({ key: { S: 'rust' }, lease_version: { S: 'v' }, lease_expiry: { N: String(second) } });
  const endsAt = (second + 1) * 1000;
  const shown = { holder: null, fence: null, ...NO_TERMS, expiresAt: new Date(endsAt).toISOString() };
  const of = (state: string, remainingMs: number) => ({
    ...{ key: 'rust', ...shown, state, remainingMs },
    holders: [{ ...shown, state, remainingMs, mode: 'exclusive', weight: 1 }],
    ...{ used: 1, limit: null, limitBy: null, ...NOT_IN_LINE },
  });
  expect(await read('rust')).toEqual(of('held', endsAt - clock.now()));
  clock.set(endsAt);
  expect(await read('rust')).toEqual(of('expired', 0));
});
