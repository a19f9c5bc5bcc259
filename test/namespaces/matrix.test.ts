import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { pathInNamespace, type Route, scopesOf } from '../../contract/routes/route.ts';
import { ROUTES } from '../../contract/routes.ts';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { jwtAuthorizer } from '../../local/authorizer.ts';
import { type Claims, Issuer } from '../../local/issuer.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { routeScopes } from '../../local/route-scopes.ts';
import { httpEvent, lambdaContext, throughTask } from '../support/stack/adapters.ts';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

const issuer = await Issuer.of(join(await mkdtemp(join(tmpdir(), 'issuer-')), 'key.pem'));
const world = await namespaceWorld(jwtAuthorizer(issuer, routeScopes));
afterAll(() => world.stop());

interface Try {
  request: object;
  /** What a caller that is let in receives. */
  status: number;
}

/** A request for each function, and its status if no record is there yet. `path` is one that the caller may name. */
const TRIES: Record<string, (name: string, path: string) => Try> = {
  acquire: (key) => ({ request: { key, holder: 'h' }, status: 201 }),
  heartbeat: (key) => ({ request: { key, leaseId: 'l' }, status: 412 }),
  release: (key) => ({ request: { key, leaseId: 'l' }, status: 200 }),
  breakLease: (key) => ({ request: { key, fence: 1 }, status: 404 }),
  readLeases: (key) => ({ request: { key }, status: 200 }),
  cancelWaiter: (key) => ({ request: { key, ticket: 't' }, status: 200 }),
  runNext: (key) => ({ request: { key, ticket: 't' }, status: 200 }),
  capKey: (key) => ({ request: { key, limit: 3, reason: 'r' }, status: 200 }),
  withdraw: (key) => ({ request: { key, requestId: 'r', holder: 'h' }, status: 200 }),
  onceBegin: (key) => ({ request: { key, holder: 'h' }, status: 200 }),
  onceComplete: (key) => ({ request: { key, leaseId: 'o.l' }, status: 200 }),
  onceForget: (key) => ({ request: { key, fence: 1 }, status: 404 }),
  readOnce: (key) => ({ request: { key }, status: 200 }),
  rateReserve: (key) => ({ request: { key, holder: 'h', rates: [{ limit: 1, per: '1s' }] }, status: 201 }),
  rateSettle: (key) => ({ request: { key, reservation: `r.${'n'.repeat(16)}.1.1`, cancel: true }, status: 200 }),
  rateForget: (key) => ({ request: { key, paidUntil: '2026-11-26T15:36:42.273Z' }, status: 404 }),
  readRates: (key) => ({ request: { key }, status: 200 }),
  commit: (_, path) => ({ request: { path, ifNoneMatch: '*', body: 'x' }, status: 201 }),
  stageUpload: () => ({ request: {}, status: 201 }),
  resetFence: (_, path) => ({
    request: { path, ifMatch: '"e"', expectedFence: { key: 'k', token: 1 }, fence: null },
    status: 412,
  }),
  readCommit: (_, path) => ({ request: { path }, status: 200 }),
  readInFlight: () => ({ request: {}, status: 200 }),
  publish: (alias) => ({ request: { op: 'initLedger', alias }, status: 201 }),
  repairNames: (alias) => ({ request: { op: 'unretract', alias, expected: { kind: 'ledger' } }, status: 404 }),
  readNames: (alias) => ({ request: { alias }, status: 404 }),
  report: () => ({ request: {}, status: 201 }),
  readExpired: () => ({ request: { reportId: 'none' }, status: 404 }),
  clean: () => ({ request: { reportId: 'none' }, status: 404 }),
  readContract: () => ({ request: {}, status: 200 }),
  whoami: () => ({ request: {}, status: 200 }),
  readHealth: () => ({ request: {}, status: 200 }),
};

const NAMESPACE = 'team-a';
const CLAIM = 'holdfast_namespace';
const scope = (name: string) => String(PARAMETERS[name]?.default);
const every = (names: readonly string[]) => names.map(scope).join(' ');

/** A token of everything that a caller of this route may need, but for the namespace. */
const rights = (route: Route) => every(scopesOf(route).inNamespace);

type Expected = 'in' | 401 | 403;
interface Caller {
  claims: ((route: Route) => Claims) | undefined;
  /** On the route of the whole deployment, on the route of team-a, and on both for a route that only describes. */
  expected: [whole: Expected, inNamespace: Expected, describing: [Expected, Expected]];
}

const CALLERS: Record<string, Caller> = {
  administrator: {
    claims: (route) => ({ sub: 'root', scope: every(scopesOf(route).whole) }),
    expected: ['in', 403, ['in', 403]],
  },
  'own namespace': {
    claims: (route) => ({ sub: 'ann', scope: rights(route), [CLAIM]: NAMESPACE }),
    expected: [403, 'in', ['in', 'in']],
  },
  'own namespace among others': {
    claims: (route) => ({ sub: 'ann', scope: rights(route), [CLAIM]: ['team-b', NAMESPACE] }),
    expected: [403, 'in', ['in', 'in']],
  },
  'other namespace': {
    claims: (route) => ({ sub: 'ben', scope: rights(route), [CLAIM]: 'team-b' }),
    expected: [403, 403, ['in', 403]],
  },
  'no namespace': { claims: (route) => ({ sub: 'eve', scope: rights(route) }), expected: [403, 403, ['in', 403]] },
  'no token': { claims: undefined, expected: [401, 401, [401, 401]] },
  'no subject': {
    claims: (route) => ({ scope: `${every(scopesOf(route).whole)} ${rights(route)}`, [CLAIM]: NAMESPACE }),
    expected: [403, 403, [403, 403]],
  },
  'wrong scope': {
    claims: () => ({ sub: 'ann', scope: 'holdfast/another holdfast/admin2', [CLAIM]: NAMESPACE }),
    expected: [403, 403, ['in', 'in']],
  },
  'wrong claim: a longer one': {
    claims: (route) => ({ sub: 'ann', scope: rights(route), [CLAIM]: 'team-a team-b' }),
    expected: [403, 403, ['in', 403]],
  },
  'wrong claim: a part of the name': {
    claims: (route) => ({
      sub: 'ann',
      scope: rights(route),
      [CLAIM]: ['team', 'team-ab', 'TEAM-A', '', 'b,team-a', 'team-a,b'],
    }),
    expected: [403, 403, ['in', 403]],
  },
  'wrong claim: another one': {
    claims: (route) => ({ sub: 'ann', scope: rights(route), namespace: NAMESPACE, team: NAMESPACE }),
    expected: [403, 403, ['in', 403]],
  },
};

let cells = 0;

const tryOf = (route: Route, prefix = ''): Try => {
  const name = `cell-${++cells}`;
  const made = TRIES[route.function]?.(name, prefix + name);
  if (!made) throw new Error(`${route.function} has no row in this matrix`);
  return made;
};

function send(route: Route, path: string, { request }: Try, token: string | undefined) {
  if (route.method === 'POST') return world.send('POST', path, JSON.stringify(request), token);
  const query = new URLSearchParams(request as Record<string, string>).toString();
  return world.send('GET', path + (query && `?${query}`), undefined, token);
}

const PLACES = [
  { place: 'the whole deployment', pathOf: (route: Route) => route.path, at: 0 },
  { place: NAMESPACE, pathOf: (route: Route) => pathInNamespace(route).replace('{ns}', NAMESPACE), at: 1 },
] as const;

describe.each(Object.entries(CALLERS))('over HTTP, %s', (_, { claims, expected }) => {
  it.each(ROUTES.flatMap((route) => PLACES.map((one) => ({ ...one, route, name: route.function }))))(
    'a caller over HTTP is let in or refused as documented: $name of $place',
    async ({ route, pathOf, at, place }) => {
      const made = tryOf(route, place === NAMESPACE ? `${NAMESPACE}/` : '');
      const token = claims && (await issuer.token(claims(route)));
      const { status, body } = await send(route, pathOf(route), made, token);
      const [whole, inNamespace, describing] = expected;
      const cell = route.tag === 'Contract' ? describing[at] : [whole, inNamespace][at];
      expect(status, JSON.stringify(body)).toBe(cell === 'in' ? made.status : cell);
      if (status === 403 && body.code) expect(body).toMatchObject({ code: 'Forbidden', missing: expect.any(String) });
    },
  );
});

describe.each(ROUTES.map((route) => ({ route, name: route.function })))(
  'the function $name by lambda:Invoke',
  ({ route }) => {
    const handler = world.handlers[route.function] as LambdaHandler;
    const as = (alias: string | undefined) => {
      const context = lambdaContext();
      return { ...context, invokedFunctionArn: context.invokedFunctionArn + (alias === undefined ? '' : `:${alias}`) };
    };
    const code = (status: number) =>
      status < 400 ? 'ok' : { 404: 'NotFound', 412: expect.stringMatching(/Lost|Failed/) }[status];

    it.each([undefined, '$LATEST', NAMESPACE])(
      'an invocation is let in by the alias %s, within its namespace',
      async (alias) => {
        const prefix = alias === NAMESPACE ? `${NAMESPACE}/` : '';
        const { request, status } = tryOf(route, prefix);
        expect((await throughTask(handler, request, as(alias))).outcome).toEqual(code(status));
      },
    );

    it.each(['HTTP', '7', 'Team-a', 'team_a', '-a', 'a'.repeat(33)])(
      'an invocation is not let in by the alias %s',
      async (alias) => {
        const { outcome, body } = await throughTask(handler, tryOf(route).request, as(alias));
        expect([outcome, body.missing]).toEqual(['Forbidden', 'the alias of a namespace']);
      },
    );

    it.each([undefined, NAMESPACE, 'team-b'])(
      'a function refuses a forged request of the API by the alias %s',
      async (alias) => {
        const { request } = tryOf(route, `${NAMESPACE}/`);
        const forged = {
          ...httpEvent(route.method, {
            body: JSON.stringify(request),
            authorizer: { iam: { userArn: 'arn:of:another' } },
          }),
          routeKey: `${route.method} ${pathInNamespace(route)}`,
          rawPath: pathInNamespace(route).replace('{ns}', NAMESPACE),
        };
        expect((await throughTask(handler, forged, as(alias))).outcome).toBe('InvalidRequest');
      },
    );

    it.each([undefined, NAMESPACE])('a function refuses a forged event by the alias %s', async (alias) => {
      const queued = { eventSource: 'aws:sqs', messageId: 'm', body: JSON.stringify(tryOf(route).request) };
      expect((await throughTask(handler, queued, as(alias))).outcome).toBe('InvalidRequest');
      const event = {
        id: 'i',
        source: 's',
        region: 'r',
        'detail-type': 't',
        detail: { reportId: 'none' },
        resources: [],
      };
      const isTaken = alias === undefined && ['report', 'clean'].includes(route.function);
      const { outcome } = await throughTask(handler, event, as(alias));
      if (isTaken) expect(['ok', 'NotFound']).toContain(outcome);
      else expect(outcome).toBe('InvalidRequest');
    });
  },
);

it('a refused caller writes nothing, and others write only within their namespace', async () => {
  const { leasesTable, nameserviceTable } = world.locations;
  const keys = (await world.expiry.itemsOf(leasesTable)).map((item) =>
    (item.key?.S ?? '').replace(/^holdfast:(once|rate):/, ''),
  );
  const names = (await world.expiry.itemsOf(nameserviceTable)).map((item) => item.pk?.S ?? '');
  expect(new Set([...keys, ...names].map((name) => name.split('/').at(-2)))).toEqual(new Set([undefined, NAMESPACE]));
  // Six callers are let in: the administrator, two tokens and three aliases. Each leaves a lease, a run, a rate, and the two records of a cap.
  expect(keys.filter((key) => key.includes('cell-'))).toHaveLength(30);
});
