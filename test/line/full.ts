import { describe, expect, it } from 'vitest';
import { exitingAfter } from '../support/faults/mortal.ts';
import { failure } from '../support/worlds/leases.ts';
import type { LineWorld } from './world.ts';

// With this quota, one arrival of four counts the line, whatever the record says.
const QUOTA = 128;

/** A line with as many waiters as the quota allows, and the counts on its record. */
export async function fullLines(lineWorld: LineWorld) {
  const world = await lineWorld({ quotas: { waitersPerKey: QUOTA, waitersPerNamespace: 10_000 } });
  const { acquire, park, rows, putTickets, countsOf, setCounts, requests, newKey, timeline } = world;
  const waiting = (key: string, holder: string, more: object = {}) =>
    acquire({ key, holder, ttlSeconds: 60, waitSeconds: 20, ...more });
  const refused = { code: 'QueueFull', context: { quota: 'maxWaitersPerKey', limit: QUOTA } };
  const queries = () => requests.sent.filter((command) => command === 'Query').length;
  /** Three requests put a call in line. Then the call exits, so its row stays. After a second, no function remembers that the key had a line. */
  const inLine = (key: string, holder: string) => {
    timeline.advance(1000);
    return exitingAfter(3, () => waiting(key, holder));
  };
  /** A held lock with as many calls in line, as their rows and the record would be. */
  async function filled(count: number, counts: { waiters?: number; out?: number } = {}) {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 3600 });
    await inLine(key, 'the first row');
    const [template] = await rows(key);
    const names = Array.from({ length: count - 1 }, (_, index) => `${template?.ticket?.S}-${index}`);
    await putTickets(names.map((name) => ({ ...template, ticket: { S: name } })));
    await setCounts(key, { waiters: count, ...counts });
    timeline.advance(1); // so that the next ticket is later
    requests.sent.length = 0;
    return key;
  }
  const arrivals: [string, (key: string, holder: string) => Promise<unknown>][] = [
    ['a caller', waiting],
    ['a task', (key, holder) => park({ key, holder })],
  ];

  describe.each(arrivals)('%s that comes to a line', (_, arrives) => {
    it('a full line refuses every further arrival', async () => {
      const key = await filled(QUOTA);
      for (let late = 0; late < 8; late++) expect(await failure(arrives(key, `late ${late}`))).toMatchObject(refused);
      expect(queries()).toBe(8);
      expect(await rows(key)).toHaveLength(QUOTA);
    });

    it('one arrival in four corrects a record by which too many have left', async () => {
      const key = await filled(QUOTA, { out: 100 });
      for (let count = 0; count < 3; count++) await inLine(key, `not counted ${count}`);
      expect(queries()).toBe(0);
      expect(await failure(arrives(key, 'the sample'))).toMatchObject(refused);
      // The count ended at one more than the quota.
      expect(await countsOf(key)).toEqual({ waiters: QUOTA + 4, out: 3 });
      for (let late = 0; late < 2; late++) expect(await failure(waiting(key, `late ${late}`))).toMatchObject(refused);
      expect(await rows(key)).toHaveLength(QUOTA + 3);
    });
  });

  it('a line of which most have left is counted only once', async () => {
    const key = await filled(2, { waiters: 1000 });
    await exitingAfter(5, () => waiting(key, 'counts'));
    expect(queries()).toBe(1);
    expect(await countsOf(key)).toEqual({ waiters: 1001, out: 998 });
    for (const holder of ['b', 'c']) await park({ key, holder });
    await inLine(key, 'not counted');
    expect(queries()).toBe(1);
  });

  it('a caller joins a line from which enough have left', async () => {
    const key = await filled(QUOTA - 1, { waiters: 1000 });
    const [last] = await timeline.play(() => failure(waiting(key, 'the last one', { waitSeconds: 1 })));
    expect(last).toMatchObject({ code: 'LeaseHeld', context: { place: QUOTA } });
    expect(await failure(waiting(key, 'one too many'))).toMatchObject(refused);
  });

  it('a call that asks again keeps its position in a line above the quota', async () => {
    const key = newKey();
    await acquire({ key, holder: 'first', ttlSeconds: 60 });
    const asked = { requestId: 'early', waitSeconds: 1 };
    const [held] = await timeline.play(() => failure(waiting(key, 'early', asked)));
    const { ticket } = held.context.retryWith as { ticket: string };
    timeline.advance(1);
    for (let count = 0; count < 2; count++) await inLine(key, `behind ${count}`);
    const template = (await rows(key)).at(-1);
    const names = Array.from({ length: QUOTA }, (_, index) => `${template?.ticket?.S}-${index}`);
    await putTickets(names.map((name) => ({ ...template, ticket: { S: name } })));
    await setCounts(key, { waiters: QUOTA + 3 });
    for (let times = 0; times < 4; times++) {
      const [again] = await timeline.play(() => failure(waiting(key, 'early', { ...asked, ticket })));
      expect(again).toMatchObject({ code: 'LeaseHeld', context: { place: 1, retryWith: { ticket } } });
    }
  });
}
