import { TransactionConflictException } from '@aws-sdk/client-dynamodb';
import { beforeEach, describe, expect, it } from 'vitest';
import { networkError } from '../support/faults/cuttable.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

const world = await nameserviceWorld();
const { publish, lookUp, rawItems, deleteRaw } = world;

const init = (alias: string) => publish({ op: 'initLedger', alias });
const source = (alias: string) =>
  publish({ op: 'publishGraphSource', alias, sourceType: 'db:Bm25Index', config: {}, dependencies: [] });
const commit = (alias: string, t = 1) => publish({ op: 'publishCommit', alias, address: `a${t}`, t });

describe('between two steps', () => {
  /** Does `what` right before the `nth` command called `name`. */
  function rightBefore(name: string, nth: number, what: () => Promise<unknown>): void {
    let seen = 0;
    world.intercepted.by = async (command, _, next) => {
      if (command !== name || ++seen !== nth) return next();
      delete world.intercepted.by;
      await what();
      return next();
    };
  }
  const setBack = (alias: string) =>
    world.repair({
      op: 'resetRef',
      alias,
      ref: 'index',
      expected: { address: 'a', t: 5 },
      next: { address: 'z', t: 3 },
    });
  const purge = async (alias: string) => {
    for (const { sk } of await rawItems(`${alias}:main`)) await deleteRaw(`${alias}:main`, sk?.S ?? '');
  };

  it('a redefinition does not change a ledger that took the alias between two steps', async () => {
    await source('retaken');
    rightBefore('TransactWriteItems', 2, async () => {
      await purge('retaken');
      await init('retaken');
    });
    expect(await failure(source('retaken'))).toMatchObject({ code: 'AlreadyExists', context: { kind: 'ledger' } });
    const sks = (await rawItems('retaken:main')).map(({ sk }) => sk?.S);
    expect(sks).toEqual(['config', 'head', 'index', 'meta', 'status']);
    expect(await lookUp('retaken')).toMatchObject({ kind: 'ledger', config: { v: 0 } });
    expect((await rawItems('retaken:main'))[0]).not.toHaveProperty('config_json');
  });

  it('a redefinition of a graph source that goes between two steps is NotFound', async () => {
    await source('removed');
    rightBefore('Query', 1, () => purge('removed'));
    expect(await failure(source('removed'))).toMatchObject({ code: 'NotFound', context: { alias: 'removed:main' } });
    expect(await rawItems('removed:main')).toEqual([]);
  });

  it('a redefinition does not show a ledger that took the alias first', async () => {
    await source('retaken late');
    rightBefore('Query', 1, async () => {
      await purge('retaken late');
      await init('retaken late');
    });
    const { code, context } = await failure(source('retaken late'));
    expect([code, context.kind]).toEqual(['AlreadyExists', 'ledger']);
  });

  it('a publish does not restore half of an alias that has gone', async () => {
    await init('gone');
    await deleteRaw('gone:main', 'head');
    rightBefore('TransactWriteItems', 1, () => purge('gone'));
    expect((await failure(commit('gone'))).code).toBe('NotFound');
    expect(await rawItems('gone:main')).toEqual([]);
  });

  it('a publish does not restore an item if the alias changed its kind', async () => {
    await init('changed');
    await deleteRaw('changed:main', 'head');
    rightBefore('TransactWriteItems', 1, async () => {
      await purge('changed');
      await source('changed');
    });
    expect((await failure(commit('changed'))).code).toBe('NotFound');
    expect((await rawItems('changed:main')).map(({ sk }) => sk?.S)).toEqual(['config', 'index', 'meta', 'status']);
  });

  it.each([
    ['is raised', (alias: string) => commit(alias, 9)],
    ['goes again', purge],
  ])('a publish to a restored ref, which %s between tries, has an unknown outcome', async (how, other) => {
    const alias = how.replace(' ', '-');
    await init(alias);
    world.requests.faults = [
      async (send) => {
        await send();
        await deleteRaw(`${alias}:main`, 'head');
        throw networkError('ECONNRESET', 'read');
      },
    ];
    rightBefore('UpdateItem', 2, () => other(alias));
    const [expected, next] = [
      { address: null, t: 0 },
      { address: 'a5', t: 5 },
    ];
    const op = { op: 'compareAndSetRef', alias, ref: 'commit', expected, next };
    expect((await failure(publish(op))).code).toBe('OutcomeUnknown');
  });

  it('a publish to a restored index is stale if a higher t came', async () => {
    await init('passed');
    await deleteRaw('passed:main', 'index');
    const other = await nameserviceWorld({ table: world.table });
    rightBefore('UpdateItem', 2, async () => {
      world.requests.faults = [
        async (send) => {
          await send();
          await other.publish({ op: 'publishIndex', alias: 'passed', address: 'a9', t: 9 });
          throw networkError('ECONNRESET', 'read');
        },
      ];
    });
    const index = { op: 'publishIndex', alias: 'passed', address: 'a5', t: 5, allowEqual: true };
    expect(await publish(index)).toMatchObject({ outcome: 'stale', current: { address: 'a9', t: 9 } });
  });

  it.each([
    ['gone', (alias: string) => deleteRaw(`${alias}:main`, 'index')],
    ['set back', (alias: string) => setBack(alias)],
  ])('a replacement of an index at its t, which was %s, still lands', async (how, other) => {
    const alias = `index ${how}`;
    await init(alias);
    const index = { op: 'publishIndex', alias, t: 5, allowEqual: true };
    await publish({ ...index, address: 'a' });
    rightBefore('UpdateItem', 2, () => other(alias));
    expect(await publish({ ...index, address: 'b' })).toMatchObject({ outcome: 'updated', current: { t: 5 } });
    expect((await lookUp(alias)).index).toEqual({ address: 'b', t: 5 });
  });

  it.each([0, 1, 3])('a fast-forward tries creations that other calls beat %i times again', async (maxRetries) => {
    const alias = `beaten-${maxRetries}`;
    const other = await nameserviceWorld({ table: world.table });
    const sent: string[] = [];
    // The alias is gone for each update and there for each creation.
    world.intercepted.by = async (command, _, next) => {
      sent.push(command);
      if (command === 'UpdateItem') await purge(alias);
      if (command === 'TransactWriteItems') await other.publish({ op: 'initLedger', alias });
      return next();
    };
    const target = { address: 'a1', t: 1 };
    const { code, context } = await failure(publish({ op: 'fastForwardCommit', alias, ...target, maxRetries }));
    delete world.intercepted.by;
    expect([code, context.actual]).toEqual(['Conflict', { address: null, t: 0 }]);
    expect(sent.filter((command) => command === 'TransactWriteItems')).toHaveLength(maxRetries + 1);
  });
});

it('a transaction in the way after a lost reply makes an unknown outcome', async () => {
  await init('in the way');
  const options = { message: 'Transaction is ongoing', $metadata: { httpStatusCode: 400 } };
  world.requests.faults = ['lostReply', () => Promise.reject(new TransactionConflictException(options))];
  const { code, context } = await failure(commit('in the way'));
  expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: expect.any(String) }]);
});

describe('a write whose alias was removed before the next try', () => {
  // A client of its own for each test: the SDK stops trying again once too many of its tries have failed.
  let world: Awaited<ReturnType<typeof nameserviceWorld>>;
  beforeEach(async () => {
    world = await nameserviceWorld();
  });

  const publish = (input: object) => world.publish(input);
  const init = (alias: string) => publish({ op: 'initLedger', alias });
  const pointer = { address: 'a1', t: 1 };
  const alias = 'removed';
  /** The write lands, its answer is lost, and the alias is removed. */
  const landAndRemove = async (send: () => Promise<unknown>) => {
    await send();
    for (const { sk } of await world.rawItems(`${alias}:main`)) await world.deleteRaw(`${alias}:main`, sk?.S ?? '');
    throw networkError('ECONNRESET', 'read');
  };

  it.each([
    { op: 'publishCommit', ...pointer },
    { op: 'publishIndex', ...pointer },
    { op: 'fastForwardCommit', ...pointer },
    { op: 'retract' },
    { op: 'pushStatus', expected: { state: 'ready', v: 1 }, next: { state: 'indexing', v: 2 } },
  ])('a write $op whose alias was removed between tries is an unknown outcome', async (op) => {
    await init(alias);
    world.requests.faults = [landAndRemove];
    const { code, context } = await failure(publish({ ...op, alias, requestId: 'mine' }));
    expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: 'mine' }]);
    expect(await world.rawItems(`${alias}:main`)).toEqual([]);
  });

  it('an unretract whose alias was removed between tries is an unknown outcome', async () => {
    await init(alias);
    await publish({ op: 'retract', alias });
    world.requests.faults = [landAndRemove];
    const { code } = await failure(world.repair({ op: 'unretract', alias, expected: { kind: 'ledger' } }));
    expect(code).toBe('OutcomeUnknown');
  });

  it('a write whose alias was removed is NotFound if every try was answered', async () => {
    expect((await failure(publish({ op: 'publishCommit', alias: 'never there', ...pointer }))).code).toBe('NotFound');
  });
});
