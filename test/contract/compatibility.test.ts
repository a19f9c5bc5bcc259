import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { breakingChanges, unnamed } from '../../contract/compatibility.ts';
import { aFew } from '../support/time/rounds.ts';

const read = async (file: string) => JSON.parse(await readFile(`contract/${file}`, 'utf8'));
const current = await read('openapi.json');

/** The releases whose contracts are stored, by version and not by letter. Before the first release there is no folder. */
const versions = (await readdir('contract/released').catch(() => []))
  .map((file) => file.replace('.json', ''))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

/** The changes since a release that can break a caller, and that the changelog does not name. */
function unnamedSince(version: string, { released, now }: Record<'released' | 'now', Document>, changelog: string) {
  const [since = '', before] = changelog.split(`\n## ${version}`);
  expect(before, `the changelog has ${version}`).toBeDefined();
  return unnamed(breakingChanges(released, now), since);
}

it.each(versions.slice(-1))('the changelog names what can break a caller of release %s', async (version) => {
  const documents = { released: await read(`released/${version}.json`), now: current };
  const changelog = await readFile('CHANGELOG.md', 'utf8');
  expect(unnamedSince(version, documents, changelog), 'contract/README.md has the policy for change').toEqual([]);
});

// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes, which each case changes somewhere
type Document = any;

/** The document with only these calls, and with the components that they refer to. */
function partOf(document: Document, calls: string[]): Document {
  const paths = Object.fromEntries(calls.map((path) => [path, document.paths[path]]));
  const components: Document = {};
  const take = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return;
    const [, , kind = '', id = ''] = '$ref' in part ? String(part.$ref).split('/') : [];
    if (id && !components[kind]?.[id]) {
      components[kind] = { ...components[kind], [id]: document.components[kind][id] };
      take(document.components[kind][id]);
    }
    for (const inner of Object.values(part)) take(inner);
  };
  take(paths);
  return { ...document, paths, components };
}

/** The document without its errors, which take most of the time of a comparison. */
function withoutErrors(document: Document): Document {
  const copy = structuredClone(document);
  for (const path of Object.values<Document>(copy.paths))
    for (const { responses = {} } of Object.values<Document>(path))
      for (const status of Object.keys(responses)) if (!status.startsWith('2')) delete responses[status];
  return copy;
}

const ACQUIRE = partOf(current, ['/v1/leases/acquire']);
const SUCCESSFUL_ACQUIRE = partOf(withoutErrors(current), ['/v1/leases/acquire']);
const HEARTBEAT = partOf(current, ['/v1/leases/heartbeat']);
const COMMIT = partOf(current, ['/v1/commits']);

it('a call that is gone is reported unless the changelog names the call', () => {
  const released = structuredClone(HEARTBEAT);
  released.paths['/v1/gone'] = { get: released.paths['/v1/leases/heartbeat'].post };
  const unnamedNow = (changelog: string, before: Document) =>
    unnamedSince('1.0.0', { released: before, now: HEARTBEAT }, changelog);
  const without = '# Changelog\n\n## Unreleased\n\n- Something else.\n\n## 1.0.0\n\n- `GET /v1/gone` is new.\n';
  expect(unnamedNow(without, released)).toMatchObject([{ subject: 'GET /v1/gone' }]);
  const named = without.replace('Something else', '`GET /v1/gone` no longer exists');
  expect(unnamedNow(named, released)).toEqual([]);
  expect(unnamedNow(without, HEARTBEAT)).toEqual([]);
});

describe('a difference', () => {
  /** A comparison resolves every reference again, so each case compares only a small part of the document. */
  const breaking = (before: Document, change: (document: Document) => void) => {
    const changed = structuredClone(before);
    change(changed);
    return breakingChanges(before, changed).map(({ subject, member }) => `${subject} ${member}`);
  };
  const schemaOf = (document: Document, component: string) => document.components.schemas[component];
  const fieldsOf = (document: Document, component: string) => schemaOf(document, component).properties;
  const require = (schema: Document, field: string) => {
    schema.properties[field] = { type: 'string' };
    schema.required.push(field);
  };

  const harmless: [string, (document: Document) => void, part?: Document][] = [
    [
      'a new route',
      ({ paths }) => (paths['/v1/new'] = { get: { operationId: 'n', responses: { 200: { description: 'n' } } } }),
    ],
    ['a new field of an answer', (document) => (fieldsOf(document, 'Grant').more = { type: 'string' }), HEARTBEAT],
    ['a new field that is always in an answer', (document) => require(schemaOf(document, 'Grant'), 'more'), HEARTBEAT],
    [
      'a new field that is always in an error',
      (document) => require(schemaOf(document, 'LeaseHeld').allOf[1], 'more'),
      ACQUIRE,
    ],
    [
      'a new field of a request that needs others',
      (document) => {
        fieldsOf(document, 'AcquireRequest').more = { type: 'string' };
        schemaOf(document, 'AcquireRequest').dependentRequired.more = ['requestId'];
      },
    ],
    [
      'a new optional field of a request',
      (document) => (fieldsOf(document, 'AcquireRequest').more = { type: 'string' }),
    ],
    ['a wider bound of a request', (document) => (fieldsOf(document, 'AcquireRequest').ttlSeconds.maximum = 172_800)],
    ['a new error code', (document) => fieldsOf(document, 'Problem').code.enum.push('NewCode'), ACQUIRE],
    [
      'one more error code for a status that has one',
      ({ paths }) => {
        const { responses } = paths['/v1/commits'].post;
        const problem = responses[409].content['application/problem+json'];
        problem.schema = { oneOf: [problem.schema, { $ref: '#/components/schemas/NotFound' }] };
      },
      COMMIT,
    ],
    ['other words', (document) => (fieldsOf(document, 'Grant').key.description = 'In other words.'), HEARTBEAT],
  ];
  it.each(aFew(1, harmless))('a difference may be %s', (_, change, part = SUCCESSFUL_ACQUIRE) => {
    expect(breaking(part, change)).toEqual([]);
  });

  const harmful: [string, string, (document: Document) => void, part?: Document][] = [
    [
      'a route that is gone',
      'POST /v1/leases/break undefined',
      ({ paths }) => delete paths['/v1/leases/break'],
      partOf(current, ['/v1/leases/break']),
    ],
    [
      'a field of an answer that is gone',
      'POST /v1/leases/heartbeat fence',
      (document) => delete fieldsOf(document, 'Grant').fence,
      HEARTBEAT,
    ],
    [
      'a field of a request that needs others now',
      'AcquireRequest data',
      (document) => (schemaOf(document, 'AcquireRequest').dependentRequired.data = ['requestId']),
    ],
    [
      'a new field of a request that is required',
      'AcquireRequest more',
      (document) => require(schemaOf(document, 'AcquireRequest'), 'more'),
    ],
    [
      'a new required field of a component that requests and answers share',
      'Grant more',
      (document) => {
        const shared = { $ref: '#/components/schemas/Grant' };
        document.paths['/v1/new'] = { post: { requestBody: { content: { 'application/json': { schema: shared } } } } };
        require(schemaOf(document, 'Grant'), 'more');
      },
      HEARTBEAT,
    ],
    [
      'a field that may be null',
      'Grant holder',
      (document) => (fieldsOf(document, 'Grant').holder.type = ['string', 'null']),
      HEARTBEAT,
    ],
    [
      'a field of another type',
      'Grant fence',
      (document) => (fieldsOf(document, 'Grant').fence = { type: 'string' }),
      HEARTBEAT,
    ],
    [
      'a new value in an answer',
      'POST /v1/leases/break new',
      (document) => fieldsOf(document, 'KeySummary').state.enum.push('new'),
      partOf(current, ['/v1/leases/break']),
    ],
    [
      'a field of a request that is refused now',
      'POST /v1/leases/acquire data',
      (document) => delete fieldsOf(document, 'AcquireRequest').data,
    ],
    [
      'a field that is required now',
      'AcquireRequest requestId',
      (document) => document.components.schemas.AcquireRequest.required.push('requestId'),
    ],
    [
      'a narrower bound of a request',
      'AcquireRequest ttlSeconds',
      (document) => (fieldsOf(document, 'AcquireRequest').ttlSeconds.maximum = 60),
    ],
    [
      'a parameter that is gone',
      'GET /v1/leases state',
      ({ paths }) => {
        const { get } = paths['/v1/leases'];
        get.parameters = get.parameters.filter(({ name }: { name: string }) => name !== 'state');
      },
      partOf(current, ['/v1/leases']),
    ],
    [
      'a status that is gone',
      'POST /v1/commits 412',
      ({ paths }) => delete paths['/v1/commits'].post.responses[412],
      COMMIT,
    ],
  ];
  it.each(aFew(2, harmful))('a difference may not be %s', (_, named, change, part = SUCCESSFUL_ACQUIRE) => {
    expect(breaking(part, change)).toContain(named);
  });
});

describe('the changelog', () => {
  const changes = [
    { subject: 'Grant', member: 'fence', detail: '' },
    { subject: 'POST /v1/leases/heartbeat', member: 'fence', detail: '' },
    { subject: 'POST /v1/leases/break', member: undefined, detail: '' },
  ];

  it('the changelog names a changed item with its member and its component', () => {
    const both = '### Removed\n\n- The `fence` of a `Grant`.\n- The call `POST /v1/leases/break`.\n';
    expect(unnamed(changes, both)).toEqual([]);
    expect(unnamed(changes, '- The `fence` of something.\n- `Grant` has changed.\n')).toEqual(changes);
    expect(unnamed(changes, '')).toEqual(changes);
  });
});
