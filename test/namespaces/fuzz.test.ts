import { afterAll, expect, it } from 'vitest';
import type { LambdaHandler } from '../../local/lambda.ts';
import { seededRandom, testSeed } from '../support/chance/seed.ts';
import { type Answer, httpEvent, throughHttp } from '../support/stack/adapters.ts';
import { rounds } from '../support/time/rounds.ts';
import { entryOf, lease } from '../support/worlds/expiry.ts';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const world = await namespaceWorld();
afterAll(() => world.stop());

const seed = testSeed();
const random = seededRandom(seed);
const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
const several = (from: readonly string[], max: number) =>
  Array.from({ length: Math.floor(random() * (max + 1)) }, () => pick(from)).join('');

const OWN = 'team-a';
/** Data of other namespaces, which no answer may show. */
const SECRET = 'secret-of-others';

/** Parts of names that try to leave their namespace. */
const PARTS = [
  ...['/', '//', '..', '.', '../', 'team-b/', 'team-a/', 'team-a', ':', '%2f', '%2e', '\\', '\0', '\u2044', '\uff0f'],
  ...['é', 'a', 'x', ' ', '*', '{ns}', '$', 'holdfast:', '__proto__', 'k'.repeat(40), '\ud83d\ude00', 'main', '-'],
];
const names = () => several(PARTS, 5);

const SEGMENTS = [
  ...['/', '/', '/v1', '/ns', '/team-a', '/team-b', '/leases', '/acquire', '/v1/ns/team-a', '/leases/acquire'],
  ...[
    '/..',
    '/.',
    '//',
    '%2f',
    '%2e%2e',
    '/%2e',
    ';',
    '?',
    '#',
    '\\',
    'A',
    '/team-a/leases/acquire',
    '\0',
    '/ns/team-a',
  ],
];
const paths = () =>
  pick([
    () => several(SEGMENTS, 6),
    () =>
      `/v1/ns/${several(['team', '-', 'a', 'b', '0', 'A', '_', '.', '/', '%', 'é', 'x'.repeat(31)], 4)}/leases/acquire`,
    () => `/v1/ns/team-a${several(SEGMENTS, 2)}/leases/acquire`,
  ])();

const base64url = (text: string) => Buffer.from(text).toString('base64url');

/** Cursors as a list without a namespace would give them for keys of others, sealed cursors that are cut, and noise. */
const cursors = (sealed: string) =>
  pick([
    () => base64url(pick(['team-b/secret-1', 'secret-2', 'ledger>team-b/x:main', 'team-b/p\0*', names()])),
    () => sealed.slice(0, Math.floor(random() * sealed.length)),
    () => {
      const at = Math.floor(random() * sealed.length);
      return sealed.slice(0, at) + pick(['A', 'z', '-', '_']) + sealed.slice(at + 1);
    },
    () => names(),
  ])();

const handler = (name: string) => world.handlers[name] as LambdaHandler;

const ask = (name: string, method: 'GET' | 'POST', route: string, request: Record<string, unknown>): Promise<Answer> =>
  throughHttp(handler(name), {
    ...httpEvent(
      method,
      method === 'POST'
        ? { body: JSON.stringify(request) }
        : { query: new URLSearchParams(request as Record<string, string>).toString() },
    ),
    routeKey: `${method} /v1/ns/{ns}/${route}`,
    rawPath: `/v1/ns/${OWN}/${route}`,
  });

/** The keys of all stored items. */
async function stored(): Promise<string[]> {
  const { leasesTable, commitsTable, nameserviceTable } = world.locations;
  const of = async (table: string, attribute: string) =>
    (await world.expiry.itemsOf(table)).map((item) => item[attribute]?.S ?? '');
  const objects = await world.commits.allObjects();
  return [
    ...(await of(leasesTable, 'key')),
    ...(await of(commitsTable, 'path')),
    ...(await of(nameserviceTable, 'pk')),
    ...objects,
  ];
}

it(`no path, key or cursor reads or writes outside of its namespace (seed ${seed})`, async () => {
  const far = world.clock.now() + 3_600_000_000;
  for (const key of ['team-b/secret-1', 'secret-2', 'team-ab/secret-3', 'team-a'])
    await world.expiry.putLease(lease(key, far, { h: entryOf(SECRET, far, { m: { S: 'secret-request' } }) }));
  const whole = world.of();
  await whole.post('nameservice/publish', { op: 'publishCommit', alias: 'team-b/x', address: SECRET, t: 1 });
  await whole.post('commits', { path: 'team-b/p', ifNoneMatch: '*', body: 'x', metadata: { m: SECRET } });
  for (const key of ['one', 'two', 'three']) await ask('acquire', 'POST', 'leases/acquire', { key, holder: 'h' });
  const before = new Set(await stored());
  const sealed = String((await ask('readLeases', 'GET', 'leases', { limit: 1 })).body.nextCursor);
  expect(sealed.length).toBeGreaterThan(20);

  const allowed = new Set<string>();
  const seen = { ok: 0, refused: 0 };
  const note = ({ outcome, body }: Answer) => {
    seen[outcome === 'ok' ? 'ok' : 'refused']++;
    expect(JSON.stringify(body)).not.toContain(SECRET);
    expect(outcome).not.toBe('Unavailable');
  };
  const turns = [
    async () => {
      const rawPath = paths();
      const routeKey = pick(['POST /v1/ns/{ns}/leases/acquire', 'POST /v1/leases/acquire']);
      const [, namespace] = /^\/v1\/ns\/([a-z0-9][a-z0-9-]{0,31})\/leases\/acquire$/.exec(rawPath) ?? [];
      const isWhole = rawPath === '/v1/leases/acquire' && routeKey.endsWith(rawPath);
      const event = { ...httpEvent('POST', { body: JSON.stringify({ key: 'fuzz', holder: 'h' }) }), rawPath, routeKey };
      // API Gateway does not choose a route of the whole deployment for such a path.
      if (!routeKey.includes('{ns}') && !isWhole && !rawPath.includes('/ns/')) return;
      const answer = await throughHttp(handler('acquire'), event);
      note(answer);
      if (answer.outcome === 'InvalidRequest') return;
      expect(isWhole || namespace !== undefined, rawPath).toBe(true);
      allowed.add(isWhole ? 'fuzz' : `${namespace}/fuzz`);
    },
    async () => note(await ask('acquire', 'POST', 'leases/acquire', { key: names(), holder: 'h' })),
    async () => note(await ask('release', 'POST', 'leases/release', { key: names(), leaseId: 'secret-id' })),
    async () => note(await ask('readLeases', 'GET', 'leases', { key: names() })),
    async () => note(await ask('readLeases', 'GET', 'leases', { prefix: names() || 'x', cursor: cursors(sealed) })),
    async () => note(await ask('readNames', 'GET', 'nameservice', { alias: names() })),
    async () => note(await ask('readNames', 'GET', 'nameservice', { cursor: cursors(sealed) })),
    async () =>
      note(await ask('readInFlight', 'GET', 'commits/in-flight', { cursor: cursors(sealed), prefix: names() || 'x' })),
    async () => note(await ask('readCommit', 'GET', 'commits', { path: names() })),
    async () => note(await ask('commit', 'POST', 'commits', { path: names(), ifNoneMatch: '*', body: 'x' })),
    async () => note(await ask('publish', 'POST', 'nameservice/publish', { op: 'initLedger', alias: names() })),
  ];
  for (let round = 0; round < rounds(100_000, 500); round++) await turns[round % turns.length]?.();

  const written = (await stored()).filter((name) => !before.has(name));
  expect(written.filter((name) => !name.startsWith(`${OWN}/`) && !allowed.has(name))).toEqual([]);
  expect(Math.min(seen.ok, seen.refused, written.length)).toBeGreaterThan(20);
  for (const key of ['team-b/secret-1', 'secret-2', 'team-ab/secret-3', 'team-a'])
    expect(await world.leases.rawItem(key), key).toMatchObject({
      h: { M: { h: { S: SECRET }, i: { S: 'secret-id' } } },
    });
}, 3_600_000);
