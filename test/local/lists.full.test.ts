import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startApi } from '../support/stack/api.ts';
import { lineWorld } from '../support/worlds/line.ts';

const { handlers, steps } = await lineWorld({ clock: systemClock });
const { url, stop } = await startApi(handlers);
afterAll(() => Promise.all([stop(), steps.stop()]));

const acquire = async (payload: object) => {
  const response = await fetch(`${url}/v1/leases/acquire`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(payload),
  });
  return (await response.json()) as { retryWith?: object };
};

const read = async (query: string) => (await (await fetch(`${url}/v1/leases?${query}`)).json()) as never;

it.each([
  ['a lease', {}],
  ['a permit', { limit: 1 }],
])('a list over HTTP shows at least the waiters of %s that wait', async (key, terms) => {
  await acquire({ key, ...terms, holder: 'first', ttlSeconds: 600 });
  const holders = ['a', 'b', 'c'];
  const clients = holders.map(async (holder, index) => {
    await sleep(20 * index);
    const asked = { key, ...terms, holder, requestId: holder, waitSeconds: 1 };
    const { retryWith } = await acquire(asked);
    await sleep(3000); // as a process that is stopped
    await acquire({ ...asked, waitSeconds: 2, ...retryWith });
  });
  await sleep(500);
  const samples: object[] = [];
  for (const until = Date.now() + 5000; Date.now() < until; await sleep(250)) {
    const { leases } = (await read(`state=active&prefix=${encodeURIComponent(key)}`)) as {
      leases: { waiting: number }[];
    };
    const { waiters } = (await read(`key=${encodeURIComponent(key)}&waiters=true`)) as {
      waiters: { holder: string }[];
    };
    samples.push({ listed: Number(leases[0]?.waiting) >= 3, holders: waiters.map(({ holder }) => holder).sort() });
  }
  await Promise.all(clients);
  for (const sample of samples) expect(sample).toEqual({ listed: true, holders });
});
