import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { Holdfast, type Transport } from '../../client/src/index.ts';
import { grantOf, ManualSurroundings } from '../support/client.ts';

it('every call of the contract has a method, and none goes elsewhere', async () => {
  const contract = JSON.parse(await readFile('contract/openapi.json', 'utf8'));
  const operations = Object.values<Record<string, { operationId?: string }>>(contract.paths)
    .flatMap((methods) => Object.values(methods))
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
  // Those that list have no value of their own to give, and ask only when they are read.
  for (const list of [holdfast.leases(), holdfast.names(), holdfast.expired(), holdfast.commitsInFlight()])
    await list.next();
  const anything = (method: unknown) => (method as (...args: unknown[]) => Promise<unknown>).call(holdfast, {}, {});
  const others = Object.getOwnPropertyNames(Holdfast.prototype).filter(
    (name) =>
      ![
        'constructor',
        'acquire',
        'withLease',
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
