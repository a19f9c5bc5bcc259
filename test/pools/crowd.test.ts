import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { failure } from '../support/leases.ts';
import { poolLineWorld } from '../support/pool-line.ts';
import { Timeline } from '../support/timeline.ts';

const timeline = new Timeline();
const { now } = timeline;
const world = await poolLineWorld({ clock: timeline });
const { acquire, release, read, keepWaiting, requests, steps } = world;
afterAll(() => steps.stop());

beforeEach(() => {
  requests.sent.length = 0;
});

describe('two calls that give to one line at the same time', () => {
  /** Two permits are held, and two calls in line, which look no more. */
  const prepared = async (key: string) => {
    const asked = { key, limit: 2, ttlSeconds: 60 };
    const held = [await acquire({ ...asked, holder: 'a' }), await acquire({ ...asked, holder: 'b' })] as const;
    for (const holder of ['c', 'd']) {
      const [left] = await timeline.play(() => failure(acquire({ ...asked, holder, waitSeconds: 1 })));
      const { ticket } = left.context.retryWith as { ticket: string };
      await keepWaiting(key, ticket, now() + 60_000);
    }
    requests.sent.length = 0;
    return held;
  };
  const holders = async (key: string) => (await read(key)).holders.map(({ holder }) => holder);

  it('do not race: the one whose tickets the other has granted stops', async () => {
    const [a, b] = await prepared('beaten');
    requests.faultsOf.Query = [
      async (send) => {
        const answer = await send();
        await release(b);
        return answer;
      },
    ];
    await release(a);
    const [first, second] = [
      ['UpdateItem', 'Query'],
      ['UpdateItem', 'Query', 'UpdateItem'],
    ];
    expect(requests.sent).toEqual([...first, ...second, 'UpdateItem']);
    expect(await holders('beaten')).toEqual(['c', 'd']);
  });

  it('leave no room: the one that wins sees what the other has freed, and goes on', async () => {
    const [a, b] = await prepared('goes on');
    const granted = Promise.withResolvers<void>();
    let other: Promise<unknown> | undefined;
    const released = Promise.withResolvers<void>();
    requests.faultsOf.UpdateItem = [
      'none',
      async (send) => {
        const answer = await send();
        released.resolve();
        return answer;
      },
      async (send) => {
        const answer = await send();
        granted.resolve();
        await other; // it has lost by the time at which this one looks at its answer
        return answer;
      },
    ];
    requests.faultsOf.Query = [
      async (send) => {
        const answer = await send();
        other = release(b);
        await released.promise;
        return answer;
      },
      async (send) => {
        const answer = await send();
        await granted.promise;
        return answer;
      },
    ];
    await release(a);
    expect(requests.sent.filter((command) => command === 'UpdateItem')).toHaveLength(5);
    expect(await holders('goes on')).toEqual(['c', 'd']);
  });
});
