import { readdir, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import { ERROR_CODES } from '../../contract/errors.ts';
import { replay, type Step } from '../../contract/examples/replay.ts';
import { SCENARIOS } from '../../contract/examples.ts';
import { openapi } from '../../contract/openapi.ts';
import { referencePages } from '../../contract/reference/pages.ts';
import { ROUTES } from '../../contract/routes.ts';
import { component, count, text } from '../../contract/schema.ts';
import { readContract } from '../../functions/contract/read.ts';
import { get, post } from '../support/stack/adapters.ts';
import { startApi } from '../support/stack/api.ts';
import { wholeApi } from '../support/worlds/client-worlds.ts';

const FILE = 'contract/openapi.json';
const stored = JSON.parse(await readFile(FILE, 'utf8'));
const { url, stop } = await startApi({ readContract: readContract() });
afterAll(stop);

describe('the document', () => {
  it('the document is served as stored, and may be cached only by its reader', async () => {
    const response = await fetch(`${url}/openapi.json`);
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('private, max-age=300');
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual(stored);
  });

  it('the call that reads the document does not take fields', async () => {
    expect(await get(readContract(), { version: '1' })).toMatchObject({ status: 400, outcome: 'InvalidRequest' });
    expect((await post(readContract(), {})).headers?.['cache-control']).toBe('private, max-age=300');
  });

  it('the document is what the contract says', () => {
    expect(stored).toEqual(JSON.parse(JSON.stringify(openapi())));
    expect(Object.values(stored.paths).flatMap((path) => Object.keys(path as object))).toHaveLength(2 * ROUTES.length);
  });

  it('the document allows new fields in answers, but not in requests', () => {
    const { schemas } = stored.components;
    expect(schemas.Grant.additionalProperties).toBeUndefined();
    expect(schemas.LeaseHeld.unevaluatedProperties).toBeUndefined();
    expect(schemas.AcquireRequest.additionalProperties).toBe(false);
    const strict = openapi({ strict: true }) as typeof stored;
    expect(strict.components.schemas.Grant.additionalProperties).toBe(false);
    expect(strict.components.schemas.LeaseHeld.unevaluatedProperties).toBe(false);
  });

  it('the document describes each field of a request, even nested ones', () => {
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

  it('the document contains each part that it refers to', () => {
    const refs = [...JSON.stringify(stored).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)];
    expect(refs.length).toBeGreaterThan(50);
    for (const [ref, kind = '', name = ''] of refs) expect(stored.components[kind], ref).toHaveProperty(name);
  });
});

interface Domain {
  key: string;
  fence?: number;
}

it('a schema that differs from what the code answers does not compile', () => {
  const key = text('A key.');
  const fence = z.exactOptional(count('A fence.'));
  const tied = component<Domain>();
  // Each of these must be a type error: the compiler reports a @ts-expect-error without one.
  const refused = () => [
    // @ts-expect-error a field too few
    tied('A', 'a', z.strictObject({ key })),
    // @ts-expect-error a field too many
    tied('A', 'a', z.strictObject({ key, fence, surplus: key })),
    // @ts-expect-error a field that is always there
    tied('A', 'a', z.strictObject({ key, fence: count('A fence.') })),
    // @ts-expect-error a field of another type
    tied('A', 'a', z.strictObject({ key, fence: z.exactOptional(text('A fence.')) })),
    // @ts-expect-error a field that may be null
    tied('A', 'a', z.strictObject({ key: z.nullable(key), fence })),
  ];
  expect(refused).toBeTypeOf('function');
  const schema = tied('TiedForTest', 'As the domain has it.', z.strictObject({ key, fence }));
  expect(schema.safeParse({ key: 'k', fence: 1 }).success).toBe(true);
  expect(schema.safeParse({ key: 'k', surplus: 1 }).success).toBe(false);
});

const pages = referencePages();
const reference = Object.values(pages).join('\n');

describe('the reference in docs/api', () => {
  it('the pages of docs/api match the contract, and there is no other page', async () => {
    expect((await readdir('docs/api')).toSorted()).toEqual(Object.keys(pages).toSorted());
    for (const [name, page] of Object.entries(pages)) expect(await readFile(`docs/api/${name}`, 'utf8')).toBe(page);
  });

  it('docs/api describes each call with its route and an example of success', () => {
    for (const { summary, method, path } of ROUTES) {
      const [, section = ''] = reference.split(`\n## ${summary}\n`);
      const [own = ''] = section.split('\n## ');
      expect(own).toContain(`\`${method} ${path}\``);
      expect(own, summary).toMatch(/Answer, `20[01]`:/);
    }
  });

  it('docs/api describes each error', () => {
    for (const error of ERROR_CODES) expect(pages['errors.md']).toContain(`\n### ${error}\n`);
  });

  it('docs/api says what each field means', () => {
    expect(reference.match(/^\|.*\| {2}\|$/gm) ?? []).toEqual([]);
  });

  it('the pages of docs/api have at most 3,400 words, outside of tables', () => {
    for (const [name, page] of Object.entries(pages))
      expect(page.split(/\s+/).filter((word) => word !== '|').length, name).toBeLessThanOrEqual(3400);
  });
});

let stopFresh = async () => {};
afterEach(() => stopFresh());

/** The task that the examples park. */
const TOKEN = 'token-AQCEAAAAKgAAAAM';

/** The examples of in-flight commits begin after a commit whose writer has exited. */
const IN_FLIGHT = {
  ...{ path: { S: 'log/00043.json' }, etag: { S: '*' }, generation: { N: '0' }, timeout: { N: '20000' } },
  ...{ ttl: { N: '9999999999' }, commit_id: { S: 'job-9' } },
};

async function freshApi(): Promise<string> {
  const api = await wholeApi();
  stopFresh = api.stop;
  api.tasks.set(TOKEN, { token: TOKEN, state: 'waiting' });
  await api.commits.putRecord({ ...IN_FLIGHT, written_at: { N: String(Date.now()) } });
  return api.url;
}

async function sent(api: string, { function: name, request }: Step) {
  const { method, path } = ROUTES.find((route) => route.function === name) ?? {};
  const query = method === 'GET' ? `?${new URLSearchParams(request as Record<string, string>)}` : '';
  const body = method === 'POST' ? { body: JSON.stringify(request) } : {};
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${api}${path}${query}`, { method: String(method), headers, ...body });
  const answer = (await response.json()) as { url: string };
  // The next commit takes what was uploaded.
  if (name === 'stageUpload') await fetch(answer.url, { ...answer, body: 'thirteen rows' });
  return { status: response.status, answer };
}

describe('recorded examples', () => {
  it.each(Object.keys(SCENARIOS))(
    'the functions answer the examples of contract/examples/%s.json as they are recorded',
    async (name) => {
      const file = resolve(`contract/examples/${name}.json`);
      const api = await freshApi();
      const replayed = await replay(JSON.parse(await readFile(file, 'utf8')), (step) => sent(api, step));
      // With --update, this records the answers.
      await expect(`${JSON.stringify(replayed, null, 2)}\n`).toMatchFileSnapshot(file);
    },
  );
});
