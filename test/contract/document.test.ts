import { readFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { openapi } from '../../contract/openapi.ts';
import { ROUTES } from '../../contract/routes.ts';
import { readContract } from '../../functions/contract/read.ts';
import { get, post } from '../support/stack/adapters.ts';
import { startApi } from '../support/stack/api.ts';

const FILE = 'contract/openapi.json';
const stored = JSON.parse(await readFile(FILE, 'utf8'));
const { url, stop } = await startApi({ readContract: readContract() });
afterAll(stop);

describe('the document', () => {
  it('the document is served as it is stored, and may be cached by its reader alone', async () => {
    const response = await fetch(`${url}/openapi.json`);
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('private, max-age=300');
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual(stored);
  });

  it('the call that reads the document takes no fields', async () => {
    expect(await get(readContract(), { version: '1' })).toMatchObject({ status: 400, outcome: 'InvalidRequest' });
    expect((await post(readContract(), {})).headers?.['cache-control']).toBe('private, max-age=300');
  });

  it('the document is what the contract says', () => {
    expect(stored).toEqual(JSON.parse(JSON.stringify(openapi())));
    expect(Object.values(stored.paths).flatMap((path) => Object.keys(path as object))).toHaveLength(2 * ROUTES.length);
  });

  it('the document leaves answers open, so that a later version may add fields, and requests closed', () => {
    const { schemas } = stored.components;
    expect(schemas.Grant.additionalProperties).toBeUndefined();
    expect(schemas.LeaseHeld.unevaluatedProperties).toBeUndefined();
    expect(schemas.AcquireRequest.additionalProperties).toBe(false);
    const strict = openapi({ strict: true }) as typeof stored;
    expect(strict.components.schemas.Grant.additionalProperties).toBe(false);
    expect(strict.components.schemas.LeaseHeld.unevaluatedProperties).toBe(false);
  });

  it('the document says of each field of a request what it is, also of nested fields', () => {
    const untyped: string[] = [];
    // biome-ignore lint/suspicious/noExplicitAny: JSON Schema
    const visit = (where: string, schema: any) => {
      for (const [name, field] of Object.entries<typeof schema>(schema.properties ?? {})) {
        if (!field.description) untyped.push(`${where}.${name}`);
        visit(`${where}.${name}`, field);
      }
    };
    const requests = Object.entries<object>(stored.components.schemas).filter(
      ([, schema]) => 'additionalProperties' in schema && schema.additionalProperties === false,
    );
    expect(requests.length).toBeGreaterThan(20);
    for (const [name, schema] of requests) visit(name, schema);
    expect(untyped).toEqual([]);
    const { kinds } = stored.components.schemas.CleanRequest.properties;
    expect([kinds.type, kinds.minItems]).toEqual(['array', 1]);
  });

  it('the document has each part that it refers to', () => {
    const refs = [...JSON.stringify(stored).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
    expect(refs.length).toBeGreaterThan(50);
    for (const [ref, kind = '', name = ''] of refs) expect(stored.components[kind], ref).toHaveProperty(name);
  });
});
