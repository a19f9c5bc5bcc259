import { afterAll, beforeAll, expect, it } from 'vitest';
import { Holdfast, type HoldfastOptions, isHoldfastError } from '../../client/src/index.ts';
import { systemClock } from '../../shared/clock.ts';
import { startApi } from '../support/api.ts';
import { commitWorld } from '../support/commits.ts';
import { expiryWorld } from '../support/expiry.ts';
import { leaseWorld } from '../support/leases.ts';
import { nameserviceWorld } from '../support/nameservice.ts';
import { scenario } from './scenario.ts';

let api: Awaited<ReturnType<typeof startApi>>;
let world: Awaited<ReturnType<typeof worlds>>;

async function worlds() {
  const clock = systemClock;
  const [leases, commits, names] = await Promise.all([
    leaseWorld({ clock }),
    commitWorld({ clock }),
    nameserviceWorld({ clock }),
  ]);
  const tables = { leasesTable: leases.table, commitsTable: commits.table, nameserviceTable: names.table };
  const places = { ...tables, waitersTable: undefined, bucket: commits.bucket };
  const expired = await expiryWorld({ clock, places });
  return { leases, handlers: { ...leases.handlers, ...commits.handlers, ...names.handlers, ...expired.handlers() } };
}

beforeAll(async () => {
  world = await worlds();
  api = await startApi(world.handlers);
});
afterAll(() => api.stop());

type Way = HoldfastOptions extends infer Options ? (Options extends unknown ? Omit<Options, 'holder'> : never) : never;

const run = (way: Way, everything: boolean) => {
  const party = (holder: string) => new Holdfast({ ...way, holder } as HoldfastOptions);
  return scenario({ holdfast: party('scenario'), other: party('other'), isHoldfastError, everything });
};

it('over HTTP, signed', { timeout: 60_000 }, async () => {
  const credentials = async () => ({ accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'token' });
  expect((await run({ endpoint: api.url, region: 'eu-west-1', credentials }, true)).length).toBe(12);
});

it('over HTTP, with a JWT', { timeout: 60_000 }, async () => {
  const seen: unknown[] = [];
  const watching: typeof fetch = (url, init) => {
    if (String(url).startsWith(api.url)) seen.push(new Headers(init?.headers).get('authorization'));
    return fetch(url, init);
  };
  let asked = 0;
  const token = () => `jwt-${++asked}`;
  expect((await run({ endpoint: `${api.url}/`, token, fetch: watching }, false)).length).toBe(7);
  expect(seen.length).toBeGreaterThan(20);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.every((value) => /^Bearer jwt-\d+$/.test(String(value)))).toBe(true);
});
