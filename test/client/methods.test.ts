import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ID_OF } from '../../clients/typescript/src/attempt.ts';
import { Holdfast, HoldfastError, type Operation, type Transport } from '../../clients/typescript/src/index.ts';
import { grantOf, ManualSurroundings } from '../support/time/process-clock.ts';

/** The paths without those of namespaces, which a client reaches by another endpoint. */
const pathsOf = ({ paths }: { paths: Record<string, Record<string, unknown>> }) =>
  Object.entries(paths).flatMap(([path, methods]) => (path.startsWith('/v1/ns/') ? [] : [methods]));

it('every call of the contract has a method, and every method its call', async () => {
  const contract = JSON.parse(await readFile('contract/openapi.json', 'utf8'));
  const operations = pathsOf(contract)
    .flatMap(Object.values)
    .flatMap(({ operationId }) => operationId ?? []);

  const called = new Set<string>();
  const transport: Transport = async (operation, payload) => {
    called.add(operation);
    return {
      ...grantOf(payload as Record<string, unknown>),
      leases: [],
      commits: [],
      records: [],
      rows: [],
      nextCursor: null,
    };
  };
  const by = new ManualSurroundings();
  const holdfast = new Holdfast({ transport, holder: 'x', surroundings: by });
  const lease = await holdfast.acquire('k');
  await by.advance(20_000);
  await lease.release();
  // The methods that list send their first request only when they are read.
  for (const list of [holdfast.leases(), holdfast.names(), holdfast.expired(), holdfast.commitsInFlight()])
    await list.next();
  const anything = (method: unknown) => (method as (...args: unknown[]) => Promise<unknown>).call(holdfast, {}, {});
  const named = [Holdfast.prototype, Object.getPrototypeOf(Holdfast.prototype)].flatMap(Object.getOwnPropertyNames);
  const others = named.filter(
    (name) =>
      ![
        'constructor',
        'acquire',
        'withLease',
        'withLeases',
        'once',
        'rate',
        'beginRun',
        'lead',
        'call',
        'leases',
        'names',
        'expired',
        'commitsInFlight',
        'upload',
        'commitUnder',
      ].includes(name),
  );
  for (const name of others) await anything(Reflect.get(holdfast, name));
  expect([...called].sort()).toEqual(operations.sort());
});

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  [combined: string]: unknown;
}

it('a retry after a lost answer names what it repeats, where it can', async () => {
  const contract = JSON.parse(await readFile('contract/openapi.json', 'utf8'));
  /** The optional fields. A required id does not name the call itself, but another one, such as that to withdraw. */
  const fieldsOf = (schema: Schema): string[] => [
    ...Object.keys(schema.properties ?? {}).filter((field) => !schema.required?.includes(field)),
    ...(schema.$ref ? fieldsOf(contract.components.schemas[schema.$ref.split('/').at(-1) ?? '']) : []),
    ...['oneOf', 'anyOf', 'allOf'].flatMap((how) => ((schema[how] ?? []) as Schema[]).flatMap(fieldsOf)),
  ];
  const named: Record<string, string> = {};
  for (const { operationId, requestBody } of pathsOf(contract).flatMap(Object.values)) {
    const fields = requestBody ? fieldsOf(requestBody.content['application/json'].schema) : [];
    const id = fields.find((field) => field === 'requestId' || field === 'commitId');
    if (id) named[operationId] = id;
  }
  expect(ID_OF).toEqual(named);

  const by = new ManualSurroundings();
  for (const [operation, id] of Object.entries(named)) {
    const sent: Record<string, unknown>[] = [];
    const transport: Transport = async (_, payload) => {
      if (sent.push(payload as Record<string, unknown>) > 1) return {};
      throw new HoldfastError({ code: 'Unreachable', detail: 'lost' });
    };
    const holdfast = new Holdfast({ transport, holder: 'x', surroundings: by });
    const done = holdfast.call(operation as Operation, {} as never);
    await by.advance(1000);
    await done;
    expect([sent.length, typeof sent[0]?.[id], sent[0]?.[id]]).toEqual([2, 'string', sent[1]?.[id]]);
  }
});
