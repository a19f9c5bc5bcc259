import { beforeEach, describe, expect, it } from 'vitest';
import { networkError } from '../support/faults/network.ts';
import { failure } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

// A client of its own for each test: the SDK stops trying again once too many of its tries have failed.
let world: Awaited<ReturnType<typeof nameserviceWorld>>;
beforeEach(async () => {
  world = await nameserviceWorld();
});

const publish = (input: object) => world.publish(input);
const init = (alias: string) => publish({ op: 'initLedger', alias });
const pointer = { address: 'a1', t: 1 };

describe('a write whose answer was lost, and whose alias an administrator removed before the next try', () => {
  const alias = 'removed';
  /** The write lands, nobody hears of it, and the alias goes. */
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
  ])(
    'a write $op whose alias was removed before the next try is an unknown outcome, and creates no record again',
    async (op) => {
      await init(alias);
      world.requests.faults = [landAndRemove];
      const { code, context } = await failure(publish({ ...op, alias, requestId: 'mine' }));
      expect([code, context.retryWith]).toEqual(['OutcomeUnknown', { requestId: 'mine' }]);
      expect(await world.rawItems(`${alias}:main`)).toEqual([]);
    },
  );

  it('unretract is an unknown outcome', async () => {
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
