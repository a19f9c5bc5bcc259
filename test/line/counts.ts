import { expect, it } from 'vitest';
import { listKeys } from '../../shared/locks/calls/list-keys.ts';
import { call } from '../support/emulators/aws.ts';
import { aFew } from '../support/time/rounds.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

const SECOND_MS = 1000;

interface Client {
  holder: string;
  callMs?: number;
  untilMs: number;
  /** How long the program stands still after its first call. */
  pauseMs?: number;
}

/** The list of keys, which reads the records, must count as many waiters as the line of a key, which reads the rows. */
export async function counts(lineWorld: LineWorld) {
  const world = await lineWorld();
  const { dependencies, acquire, release, cancel, park, parkNext, rows, see, newKey, timeline } = world;
  const { now, sleep, later } = timeline;
  const play = timeline.play.bind(timeline);

  /** The list and the line of a key at one moment. */
  async function counted(key: string) {
    const { leases } = await listKeys(dependencies)({ prefix: key, state: 'active' }, call());
    const { waiting, waiters } = await see(key);
    return {
      listed: leases.find((one) => one.key === key)?.waiting ?? 0,
      waiting,
      holders: waiters.map(({ holder }) => holder),
    };
  }

  /** Asks again for `untilMs`, as a client does. Before the second call the program stands still for `pauseMs`. */
  async function client(key: string, { holder, callMs = 3000, untilMs, pauseMs = 0 }: Client) {
    const until = now() + untilMs;
    let retryWith: object = { requestId: holder };
    for (let calls = 1; now() < until; calls++) {
      const waitSeconds = Math.ceil(Math.min(callMs, until - now()) / SECOND_MS);
      const refused = await failure(acquire({ key, holder, waitSeconds, ttlSeconds: 600, ...retryWith }));
      retryWith = refused.context.retryWith as object;
      await sleep(calls === 1 ? pauseMs : 0);
    }
  }
  /** A call that waits for a second, and leaves. @returns the fields by which the caller keeps its position */
  const leaves = async (key: string, holder: string) => {
    const refused = await failure(acquire({ key, holder, requestId: holder, waitSeconds: 1 }));
    return refused.context.retryWith as object;
  };

  const held = (ttlSeconds = 3600) => acquire({ key: newKey(), holder: 'first', ttlSeconds });

  /** Counts each second. */
  async function samples(key: string, ms: number) {
    const seen: Awaited<ReturnType<typeof counted>>[] = [];
    for (const until = now() + ms; now() < until; await sleep(1000)) seen.push(await counted(key));
    return seen;
  }

  // A caller that comes back after its row has expired counts twice, until a call that leaves counts the line.
  const PAUSES: [pauseMs: number, listed: number][] = [
    [200, 3],
    [4000, 3],
    [9000, 6],
  ];
  it.each(aFew(1, PAUSES))('a list counts all waiters after a pause of %i ms', async (pauseMs, listed) => {
    const { key } = await held();
    const clients = ['a', 'b', 'c'].map((holder) => () => client(key, { holder, pauseMs, untilMs: pauseMs + 5000 }));
    const [seen] = await play(() => later(100, () => samples(key, pauseMs + 4000)), ...clients);
    expect(seen.filter(({ listed, waiting }) => listed < waiting)).toEqual([]);
    expect(seen.at(-1)).toMatchObject({ listed, waiting: 3 });
  });

  it("a list counts callers that may come back after another caller's grant", async () => {
    const first = await held();
    const { key } = first;
    const [left] = await play(
      () => leaves(key, 'a'),
      () => leaves(key, 'b'),
    );
    await release(first);
    expect(await counted(key)).toMatchObject({ listed: 2, waiting: 2 });
    await acquire({ key, holder: 'plain', ttlSeconds: 600 });
    expect(await counted(key)).toMatchObject({ listed: 2, waiting: 2 });
    const [during] = await play(
      () => later(500, () => counted(key)),
      () => failure(acquire({ key, waitSeconds: 1, holder: 'a', ...left })),
    );
    expect(during).toMatchObject({ listed: 2, waiting: 2 });
    timeline.advance(5000);
    const { listed, waiting } = await counted(key);
    expect(listed).toBeGreaterThanOrEqual(waiting);
  });
  it('a list does not count callers that did not come back', async () => {
    const first = await held();
    await play(() => leaves(first.key, 'a'));
    await release(first);
    expect(await counted(first.key)).toMatchObject({ listed: 1, waiting: 1 });
    timeline.advance(5000);
    expect(await counted(first.key)).toMatchObject({ listed: 0, waiting: 0 });
  });

  it('a call that leaves corrects a count of waiters that were withdrawn', async () => {
    const { key } = await held();
    await park({ key, holder: 'stays' });
    await parkNext({ key, holder: 'leaves' });
    await cancel(key, (await rows(key))[1]?.ticket?.S ?? '');
    await play(() => leaves(key, 'a'));
    expect(await counted(key)).toMatchObject({ listed: 2, waiting: 2 });
  });
}
