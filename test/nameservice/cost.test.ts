import { describe, expect, inject, it } from 'vitest';
import { unitCounter } from '../support/emulators/aws.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const world = await nameserviceWorld();
const { publish, repair, lookUp, list } = world;

/** As docs/nameservice.md tells them. */
const unitsOf = unitCounter(world.dynamodb);

describe('request units', () => {
  it.runIf(inject('countsUnits'))(
    'a publish and a compare-and-set cost one request unit, and two if the index is written as well',
    async () => {
      const alias = 'inventory';
      const pointer = { address: 's3://ledgers/inventory/commit/2.json', t: 2 };
      expect(await unitsOf(() => publish({ op: 'initLedger', alias }))).toEqual([11]);
      const ops = [
        { op: 'publishCommit', ...pointer },
        { op: 'publishIndex', ...pointer },
        { op: 'publishIndex', ...pointer, t: 3, allowEqual: true },
        { op: 'fastForwardCommit', ...pointer, t: 3 },
        { op: 'compareAndSetRef', ref: 'commit', expected: { ...pointer, t: 3 }, next: { ...pointer, t: 4 } },
        {
          op: 'pushStatus',
          expected: { state: 'ready', v: 1 },
          next: { state: 'indexing', v: 2, extra: { queued: 3 } },
        },
        { op: 'pushConfig', expected: { v: 0 }, next: { v: 1, payload: { defaultContextAddress: 'ctx' } } },
      ];
      for (const op of ops) expect(await unitsOf(() => publish({ alias, ...op })), op.op).toEqual([1]);
      expect(await unitsOf(() => publish({ op: 'retract', alias }))).toEqual([2]);
      const create = { op: 'compareAndSetRef', alias: 'created', ref: 'commit', expected: null, next: pointer };
      expect(await unitsOf(() => publish(create))).toEqual([11]);
    },
  );

  it.runIf(inject('countsUnits'))('a repair costs its request units', async () => {
    const alias = 'repaired';
    await publish({ op: 'initLedger', alias });
    await publish({ op: 'retract', alias });
    const unborn = { address: null, t: 0 };
    const status = { state: 'ready', v: 1 };
    const expected = { kind: 'ledger', commit: unborn, index: unborn, status, config: { v: 0 } };
    const resets = [
      { op: 'resetRef', ref: 'commit', expected: unborn, next: unborn },
      { op: 'resetStatus', expected: status, next: status },
    ];
    for (const op of resets) expect(await unitsOf(() => repair({ alias, ...op })), op.op).toEqual([1]);
    const kind = { kind: 'ledger' };
    expect(await unitsOf(() => repair({ alias, op: 'unretract', expected: kind }))).toEqual([2]);
    await publish({ op: 'retract', alias });
    expect(await unitsOf(() => repair({ alias, op: 'purge', expected }))).toEqual([11]);
  });

  it.runIf(inject('countsUnits'))('nine for a graph source', async () => {
    const source = { op: 'publishGraphSource', alias: 'search', sourceType: 'x', config: {}, dependencies: [] };
    expect(await unitsOf(() => publish(source))).toEqual([9]);
  });

  it('a lookup costs one request unit; a listing costs five an alias, and half a unit for each query of the index', async () => {
    for (const alias of ['listed-1', 'listed-2']) await publish({ op: 'initLedger', alias });
    expect(await unitsOf(() => lookUp('listed-1'))).toEqual([1]);
    expect(await unitsOf(() => list({ kind: 'ledger', prefix: 'listed-' }))).toEqual([0.5, 10]);
  });
});
