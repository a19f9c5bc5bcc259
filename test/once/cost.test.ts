import { expect, it } from 'vitest';
import { unitCounter } from '../support/emulators/aws.ts';
import { isFull } from '../support/time/rounds.ts';
import { Timeline } from '../support/time/timeline.ts';
import { onceWorld } from '../support/worlds/once.ts';

const timeline = new Timeline();
const world = await onceWorld({ clock: timeline });
const { begin, run, complete, requests } = world;
const CALLERS = 1000;
const FEWER = 300;
const MAX_WRITES = 2.1 * CALLERS;
const unitsOf = unitCounter(world.dynamodb);

it('begin and complete cost a write unit each, and a poll half a read', async () => {
  await timeline.play(async () => {
    const names = { key: 'reports/2026/nightly', holder: 'arn:aws:lambda:eu-west-1:123456789012:function:nightly' };
    expect(await unitsOf(() => run({ ...names, slot: '2026-11-25' }))).toEqual([1]);
    const { leaseId } = await run({ ...names, key: 'other', slot: '2026-11-25' });
    const waits = unitsOf(() => begin({ ...names, key: 'other', slot: '2026-11-25', waitSeconds: 1 }).catch(() => {}));
    // The first try loses with an exception, which reports no units.
    expect(new Set(await waits)).toEqual(new Set([0.5]));
    expect(await unitsOf(() => complete({ key: 'other', leaseId, result: { files: 7 } }))).toEqual([1]);
    expect(await unitsOf(() => run({ ...names, key: 'other', slot: '2026-11-26' }))).toEqual([1]);
  });
});

it('a complete with the largest result costs at most six write units', async () => {
  await timeline.play(async () => {
    const { leaseId } = await run({ key: 'large' });
    const [units = 0] = await unitsOf(() => complete({ key: 'large', leaseId, result: 'r'.repeat(4094) }));
    expect(units).toBeGreaterThan(3);
    expect(units).toBeLessThanOrEqual(6);
  });
});

it.runIf(isFull)(
  `a new slot costs ${CALLERS} callers at most ${MAX_WRITES} write units together`,
  async () => {
    requests.sent.length = 0;
    const outcomes = await timeline.play(
      ...Array.from({ length: CALLERS }, (_, at) => async () => {
        const answer = await begin({ key: 'crowd', slot: '1', holder: `host-${at}`, waitSeconds: 20 });
        if (answer.outcome !== 'run') return answer.outcome;
        await timeline.sleep(1000);
        await complete({ key: 'crowd', leaseId: answer.leaseId, result: 'once' });
        return 'run';
      }),
    );
    expect(outcomes.filter((outcome) => outcome === 'run')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(CALLERS - 1);
    // Each write is of a record below 1 KiB: one unit, even if its condition is lost.
    expect(requests.sent.filter((name) => name === 'UpdateItem').length).toBeLessThanOrEqual(MAX_WRITES);
  },
  300_000,
);

it.runIf(isFull)(
  `a dead worker costs ${FEWER} callers at most ${2.1 * FEWER} write units`,
  async () => {
    requests.sent.length = 0;
    let works = 0;
    const outcomes = await timeline.play(
      ...Array.from({ length: FEWER }, (_, at) => async () => {
        const answer = await begin({ key: 'dies', slot: '1', holder: `host-${at}`, ttlSeconds: 2, waitSeconds: 20 });
        if (answer.outcome !== 'run') return answer.outcome;
        if (works++ === 0) return 'dead';
        await complete({ key: 'dies', leaseId: answer.leaseId, result: 'once' });
        return 'run';
      }),
    );
    expect(outcomes.filter((outcome) => outcome === 'run')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(FEWER - 2);
    expect(requests.sent.filter((name) => name === 'UpdateItem').length).toBeLessThanOrEqual(2.1 * FEWER);
  },
  300_000,
);
