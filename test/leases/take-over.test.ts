import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Timeline } from '../support/time/timeline.ts';
import { failure } from '../support/worlds/leases.ts';
import { queueWorld } from '../support/worlds/line.ts';

const timeline = new Timeline();
const { now, sleep, later } = timeline;
const world = await queueWorld({ clock: timeline });
const { acquire, heartbeat, release, withdraw, read, rows, rawItem, requests, messages, park, steps } = world;
afterAll(() => steps.stop());
beforeEach(() => {
  requests.faultsOf = {};
});

let keys = 0;
const newKey = () => `taken over ${keys++}`;
const TTL_SECONDS = 5;
const MARGIN_MS = 500;
const EXPIRY_MS = TTL_SECONDS * 1000 + MARGIN_MS + 1;
const waiting = (key: string, more: object = {}) =>
  acquire({ key, holder: 'next', requestId: 'r', ttlSeconds: 10, waitSeconds: 20, ...more });
/** A call waits in line until it may take an expired lease over. `arm` runs just before that moment. */
async function takenOver(key: string, arm: () => void) {
  await acquire({ key, holder: 'first', ttlSeconds: TTL_SECONDS });
  const [grant] = await timeline.play(
    () => waiting(key),
    () => later(EXPIRY_MS - 1, async () => arm()),
  );
  return grant;
}
/** The answer to the transfer comes so late. */
const slowTransfer = (ms: number) => [
  async (send: () => Promise<unknown>) => {
    const answer = await send();
    timeline.advance(ms);
    return answer;
  },
];

describe('a call in line that hands an expired lease on to itself', () => {
  it('has the whole lease by that write: it neither looks again nor claims', async () => {
    const key = newKey();
    const grant = await takenOver(key, () => {});
    // A look may come by chance in the last millisecond before.
    expect(requests.sent.slice(requests.sent.lastIndexOf('Query'))).toEqual(['Query', 'UpdateItem', 'DeleteItem']);
    expect(grant).toMatchObject({
      repeated: false,
      remainingMs: 10_000,
      previous: { holder: 'first', ended: 'expired' },
    });
    expect(await rawItem(key)).not.toHaveProperty('claim_ttl_ms');
    expect(await rawItem(key)).not.toHaveProperty('waiters');
    expect(await rows(key)).toEqual([]);
    expect(await release(grant)).toMatchObject({ released: true });
  });

  it('does so by what it saw last, which need not be of that moment', async () => {
    const sinceLookMs: number[] = [];
    // A look may come by chance in the last millisecond before. It does not three times in a row.
    for (let times = 0; times < 3 && Math.max(0, ...sinceLookMs) <= 1; times++) {
      let lookedAt = 0;
      const look = async (send: () => Promise<unknown>) => {
        lookedAt = now();
        return send();
      };
      const handOn = async (send: () => Promise<unknown>) => {
        sinceLookMs.push(now() - lookedAt);
        return send();
      };
      await takenOver(newKey(), () => {
        requests.faultsOf.GetItem = Array(10).fill(look);
        requests.faultsOf.UpdateItem = [handOn];
      });
      requests.faultsOf = {};
    }
    expect(Math.max(...sinceLookMs)).toBeGreaterThan(1);
  });

  it('gives another that is in front of it the window, and waits on', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: TTL_SECONDS });
    const [front, grant] = await timeline.play(
      async () => {
        const one = await waiting(key, { holder: 'front', requestId: 'f' });
        await sleep(100);
        await release(one);
        return one;
      },
      () => later(10, () => waiting(key)),
    );
    expect(grant).toMatchObject({ previous: { holder: 'front', fence: front.fence, ended: 'released' } });
  });

  it('sends for a task behind it the message of the end of its grant alone: its holder is alive', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: TTL_SECONDS });
    messages.length = 0;
    const [grant] = await timeline.play(
      () => waiting(key),
      () => later(100, () => park({ key, holder: 'task' })),
    );
    expect(messages).toEqual([{ key, fence: grant.fence, delaySeconds: expect.any(Number) }]);
    await release(grant);
  });

  it('renews the lease where the answer comes late, also later than its ttl', async () => {
    for (const lateMs of [6000, 12_000]) {
      const key = newKey();
      const grant = await takenOver(key, () => {
        requests.faultsOf.UpdateItem = slowTransfer(lateMs);
      });
      expect(grant).toMatchObject({ holder: 'next', repeated: false, remainingMs: 10_000 });
      expect(await rows(key)).toEqual([]);
      await release(grant);
    }
  });

  it('knows its own transfer where the answer is lost', async () => {
    const grant = await takenOver(newKey(), () => {
      requests.faultsOf.UpdateItem = ['lostReply'];
    });
    expect(grant).toMatchObject({ holder: 'next', repeated: false, remainingMs: 10_000 });
  });

  it('takes nothing from a holder that has extended its lease since the last look', async () => {
    const key = newKey();
    const first = await acquire({ key, holder: 'first', ttlSeconds: TTL_SECONDS });
    const extendedAt = EXPIRY_MS - 1;
    const [grant] = await timeline.play(
      async () => ({ ...(await waiting(key)), at: now() }),
      () => later(extendedAt, () => heartbeat(first)),
      () => later(extendedAt + 2000, () => release(first)),
    );
    expect(grant).toMatchObject({ previous: { holder: 'first', ended: 'released' } });
  });

  it('a call whose request is withdrawn in that moment does not receive the lease, which is free', async () => {
    const key = newKey();
    const refused = await failure(
      takenOver(key, () => {
        requests.faultsOf.Query = [
          async (send) => {
            const line = await send();
            // The flag lands after the look at the line. The withdrawal then ends the expired grant, because no waiter is left.
            expect(await withdraw({ key, requestId: 'r', holder: 'next' })).toMatchObject({ cancelled: true });
            return line;
          },
        ];
      }),
    );
    expect(refused).toMatchObject({ code: 'LeaseLost', context: { reason: 'cancelled' } });
    expect(await read({ key })).toMatchObject({ state: 'expired' });
    expect(await acquire({ key, holder: 'other' })).toMatchObject({ holder: 'other' });
  });
});
