import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { breakingChanges, unnamed } from '../../contract/compatibility.ts';

const read = async (file: string) => JSON.parse(await readFile(`contract/${file}`, 'utf8'));
const current = await read('openapi.json');

/** By version, not by letter. */
const versions = (await readdir('contract/released'))
  .map((file) => file.replace('.json', ''))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

it('the changelog names every difference from the last release that can break a caller', async () => {
  const changes = breakingChanges(await read(`released/${versions.at(-1)}.json`), current);
  const [, unreleased = ''] = /\n## Unreleased\n(.*?)(?=\n## |$)/s.exec(await readFile('CHANGELOG.md', 'utf8')) ?? [];
  expect(unnamed(changes, unreleased), 'contract/README.md has the policy for change').toEqual([]);
});

// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes, which each case changes somewhere
type Document = any;

describe('a difference', () => {
  const breaking = (change: (document: Document) => void) => {
    const changed = structuredClone(current);
    change(changed);
    return breakingChanges(current, changed).map(({ subject, member }) => `${subject} ${member}`);
  };
  const schemaOf = (document: Document, component: string) => document.components.schemas[component];
  const fieldsOf = (document: Document, component: string) => schemaOf(document, component).properties;
  const require = (schema: Document, field: string) => {
    schema.properties[field] = { type: 'string' };
    schema.required.push(field);
  };

  it.each<[string, (document: Document) => void]>([
    [
      'a new route',
      ({ paths }) => (paths['/v1/new'] = { get: { operationId: 'n', responses: { 200: { description: 'n' } } } }),
    ],
    ['a new field of an answer', (document) => (fieldsOf(document, 'Grant').more = { type: 'string' })],
    ...['Commit', 'StoredObject', 'Grant', 'Fence'].map((component): [string, (document: Document) => void] => [
      `a new field that is always in an answer (${component})`,
      (document) => require(schemaOf(document, component), 'more'),
    ]),
    ['a new field that is always in an error', (document) => require(schemaOf(document, 'LeaseHeld').allOf[1], 'more')],
    ['a field that is always in an answer now', (document) => schemaOf(document, 'Commit').required.push('versionId')],
    [
      'a new field of a request that needs others',
      (document) => {
        fieldsOf(document, 'AcquireRequest').more = { type: 'string' };
        schemaOf(document, 'AcquireRequest').dependentRequired.more = ['requestId'];
      },
    ],
    [
      'a field of a request that needs no others any more',
      (document) => delete schemaOf(document, 'AcquireRequest').dependentRequired.target,
    ],
    [
      'a new optional field of a request',
      (document) => (fieldsOf(document, 'AcquireRequest').more = { type: 'string' }),
    ],
    ['a wider bound of a request', (document) => (fieldsOf(document, 'AcquireRequest').ttlSeconds.maximum = 172_800)],
    ['a new error code', (document) => fieldsOf(document, 'Problem').code.enum.push('NewCode')],
    ['other words', (document) => (fieldsOf(document, 'Grant').key.description = 'In other words.')],
  ])('may be %s', (_, change) => {
    expect(breaking(change)).toEqual([]);
  });

  it.each<[string, string, (document: Document) => void]>([
    ['a route that is gone', 'POST /v1/leases/break undefined', ({ paths }) => delete paths['/v1/leases/break']],
    [
      'a field of an answer that is gone',
      'POST /v1/leases/heartbeat fence',
      (document) => delete fieldsOf(document, 'Grant').fence,
    ],
    [
      'an optional field of an answer that is gone',
      'Grant data',
      (document) => delete fieldsOf(document, 'Grant').data,
    ],
    [
      'an optional field of a call that is gone',
      'POST /v1/commits versionId',
      (document) => delete fieldsOf(document, 'Commit').versionId,
    ],
    [
      'an optional field of an error that is gone',
      'NotFound source',
      (document) => delete schemaOf(document, 'NotFound').allOf[1].properties.source,
    ],
    [
      'a field of a request that needs others now',
      'AcquireRequest data',
      (document) => (schemaOf(document, 'AcquireRequest').dependentRequired.data = ['requestId']),
    ],
    [
      'a field of a request that needs another more',
      'POST /v1/leases/acquire target',
      (document) => schemaOf(document, 'AcquireRequest').dependentRequired.target.push('requestId'),
    ],
    [
      'a field of a request that needs others, where none did',
      'ReleaseRequest key',
      (document) => (schemaOf(document, 'ReleaseRequest').dependentRequired = { key: ['leaseId'] }),
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
    ],
    [
      'a field that may be null',
      'Grant holder',
      (document) => (fieldsOf(document, 'Grant').holder.type = ['string', 'null']),
    ],
    [
      'a field of an error that need not be there',
      'LeaseHeld retryAfterMs',
      (document) => document.components.schemas.LeaseHeld.allOf[1].required.pop(),
    ],
    ['a field of another type', 'Grant fence', (document) => (fieldsOf(document, 'Grant').fence = { type: 'string' })],
    [
      'a new value in an answer',
      'POST /v1/leases/break new',
      (document) => fieldsOf(document, 'Lease').state.enum.push('new'),
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
    ],
    ['a status that is gone', 'POST /v1/commits 412', ({ paths }) => delete paths['/v1/commits'].post.responses[412]],
  ])('may not be %s', (_, named, change) => {
    expect(breaking(change)).toContain(named);
  });
});

describe('the changelog', () => {
  const changes = [
    { subject: 'Grant', member: 'fence', detail: '' },
    { subject: 'POST /v1/leases/heartbeat', member: 'fence', detail: '' },
    { subject: 'POST /v1/leases/break', member: undefined, detail: '' },
  ];

  it('names a change in an item with the member and its call or component', () => {
    const both = '### Removed\n\n- The `fence` of a `Grant`.\n- The call `POST /v1/leases/break`.\n';
    expect(unnamed(changes, both)).toEqual([]);
    expect(unnamed(changes, '- The `fence` of something.\n- `Grant` has changed.\n')).toEqual(changes);
    expect(unnamed(changes, '')).toEqual(changes);
  });
});
