import { beforeEach, expect, it } from 'vitest';
import { underLease } from '../../shared/locks/under-lease.ts';
import { call } from '../support/emulators/aws.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';

const { acquire, read, clock, requests, dependencies } = await leaseWorld();
beforeEach(() => {
  requests.sent.length = 0;
  requests.faultsOf = {};
});

const TTL_SECONDS = 60;
type Work<Result> = Parameters<typeof underLease<Result>>[1]['work'];
const under = <Result>(key: string, work: Work<Result>) =>
  underLease(dependencies, { key, holder: 'the service', ttlSeconds: TTL_SECONDS, work }, call());
const written = () => requests.sent.filter((command) => command === 'UpdateItem').length;

it('work under a lease of the service releases it at its end', async () => {
  expect(await under('ends', async ({ fence }) => fence)).toBe(clock.now());
  expect(await read({ key: 'ends' })).toMatchObject({ state: 'released', holder: 'the service' });
  const broken = new Error('the work failed');
  const fails = async () => {
    throw broken;
  };
  await expect(under('fails', fails)).rejects.toBe(broken);
  expect(await read({ key: 'fails' })).toMatchObject({ state: 'released' });
});

it('work under a lease of the service survives a failed release', async () => {
  const work = async () => {
    requests.faultsOf.UpdateItem = Array(3).fill('lostReply');
    return 'done';
  };
  expect(await under('kept', work)).toBe('done');
});

it('work under a lease of the service does not wait for it', async () => {
  await acquire({ key: 'held', holder: 'another' });
  let hasBegun = false;
  const begins = async () => {
    hasBegun = true;
  };
  expect(await failure(under('held', begins))).toMatchObject({ code: 'LeaseHeld', context: { holder: 'another' } });
  expect(hasBegun).toBe(false);
});

it('work under a lease of the service extends it each quarter ttl', async () => {
  const extended: number[] = [];
  await under('kept up', async ({ keep }) => {
    requests.sent.length = 0;
    for (const ms of [0, 14_999, 1, 0, 14_999, 1]) {
      clock.advance(ms);
      await Promise.all([keep(), keep()]);
      extended.push(written());
    }
    expect(await read({ key: 'kept up' })).toMatchObject({ state: 'held', remainingMs: TTL_SECONDS * 1000 });
  });
  expect(extended).toEqual([0, 0, 1, 1, 1, 2]);
});
