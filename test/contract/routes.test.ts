import { readFile } from 'node:fs/promises';
import { describe, expect, inject, it } from 'vitest';
import { undocumented } from '../../contract/conformance.ts';
import { pathInNamespace } from '../../contract/routes/route.ts';
import { ROUTES } from '../../contract/routes.ts';
import { ERRORS } from '../../shared/errors.ts';
import { KINDS } from '../../shared/expiry/kinds.ts';

const { functions } = inject('service');

describe('the table of routes', () => {
  it('the table has every route of the deployment (contract/README.md says how to add one)', () => {
    const deployed = functions.flatMap(({ name, routes }) =>
      routes.map(({ method, path }) => `${method} ${path} is ${name}`),
    );
    expect(deployed.length).toBeGreaterThanOrEqual(15);
    const documented = ROUTES.flatMap((route) =>
      [route.path, pathInNamespace(route)].map((path) => `${route.method} ${path} is ${route.function}`),
    );
    expect(documented.toSorted()).toEqual(deployed.toSorted());
  });

  it('the table of routes asks for the scopes that the deployment asks for', async () => {
    const authorizers = {
      breakScope: 'breaker',
      cleanScope: 'sweeper',
      repairScope: 'repairer',
      resetFenceScope: 'fenceResetter',
    };
    const families = {
      Leases: ['administrator', 'leaseCaller'],
      Commits: ['administrator', 'commitCaller'],
      Nameservice: ['administrator', 'nameCaller'],
      'Expired records': ['administrator', 'expiryCaller'],
      Contract: ['caller', 'caller'],
    };
    for (const { path, scope, tag, function: name } of ROUTES) {
      const files = ['leases', 'once', 'rates', 'commits', 'nameservice', 'expiry', 'contract'];
      const texts = await Promise.all(files.map((file) => readFile(`infrastructure/${file}.yml`, 'utf8')));
      const [, block = ''] = texts.join('\n').split(new RegExp(`^${name}:$`, 'm'));
      const [own = ''] = block.split(/^\w+:$/m);
      const found = [...own.matchAll(/path: \S+\n\s+authorizer: \$\{self:custom\.(\w+)\./g)].map(([, one]) => one);
      const plain = families[tag];
      expect(found, path).toEqual(scope ? [authorizers[scope], authorizers[scope]] : plain);
    }
  });

  it('the table of routes gives each example a status, and 2xx to successes', () => {
    for (const { path, method, success, errors, examples } of ROUTES) {
      const statuses = [400, ...Object.keys(success).map(Number), ...errors.map((code) => ERRORS[code].status)];
      expect(examples.length, path).toBeGreaterThan(0);
      for (const { status, name } of examples) expect(statuses, `${method} ${path} ${name}`).toContain(status);
    }
  });
});

/** A query string carries numbers and booleans as text. */
const asSent = (method: string, request: object) =>
  method === 'GET' ? Object.fromEntries(new URLSearchParams(request as Record<string, string>)) : request;

describe('examples', () => {
  const all = ROUTES.flatMap((route) => route.examples.map((example) => ({ route, name: route.function, example })));

  it.each(all)(
    '$name accepts the request of the example $example.name, and may give its answer',
    ({ route, name, example: { request, status, answer } }) => {
      expect(route.request.schema.safeParse(asSent(route.method, request)).success).toBe(status !== 400);
      expect(undocumented(name, { status, body: answer })).toBeUndefined();
    },
  );
});

describe('requests', () => {
  const fields = ROUTES.flatMap(({ function: name, request }) =>
    Object.entries(request.fields).map(([field, { description, maxLength }]) => ({
      name,
      request,
      field,
      description,
      maxLength,
    })),
  );

  it('every field of a request has a description', () => {
    for (const { name, field, description } of fields)
      expect(description, `${name} ${field}`).toMatch(/^[A-Z`0-9].*\.$/);
  });

  it.each(fields.filter(({ maxLength }) => maxLength !== undefined))(
    '$name takes $maxLength characters as $field, and not one more',
    ({ request, field, maxLength }) => {
      const faults = (length: number) =>
        request.schema
          .safeParse({ [field]: field === 'alias' ? `${'a'.repeat(length - 2)}:b` : 'a'.repeat(length) })
          .error?.issues.filter(({ path, message }) => path[0] === field && /bytes/.test(message)) ?? [];
      expect(faults(Number(maxLength))).toEqual([]);
      expect(faults(Number(maxLength) + 1)).toHaveLength(1);
    },
  );
});

describe('an answer', () => {
  const released = { key: 'k', released: true };

  it('an answer has only the statuses, fields and errors of its schema', () => {
    const over = (status: number, body: object, contentType = 'application/json') =>
      undocumented('release', { status, contentType, body });
    expect(over(200, released)).toBeUndefined();
    expect(over(201, released)).toContain('the status is not documented');
    expect(over(200, released, 'text/plain')).toContain('text/plain');
    expect(over(200, { ...released, surplus: 1 })).toContain('undocumented');
    expect(over(200, { released: true })).toContain('undocumented');
    expect(over(503, { message: 'Service Unavailable' })).toBeUndefined();
    const held = ROUTES[0]?.examples.find(({ name }) => name === 'held')?.answer ?? {};
    const problem = 'application/problem+json';
    expect(over(409, held, problem)).toContain('does not list the error LeaseHeld');
    expect(undocumented('acquire', { status: 409, contentType: problem, body: held })).toBeUndefined();
    expect(undocumented('acquire', { status: 412, contentType: problem, body: held })).toContain('has the status 412');
    expect(undocumented('acquire', { body: { ...held, surplus: 1 } })).toContain('surplus');
  });

  it('an answer of a function without a route is not checked', () => {
    expect(undocumented('repairQueues', { body: { any: KINDS } })).toBeUndefined();
  });
});
