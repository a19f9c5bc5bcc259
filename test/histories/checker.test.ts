import { describe, expect, it } from 'vitest';
import { report } from '../../verification/histories/campaign.ts';
import { entry } from '../../verification/histories/handmade.ts';
import { table } from '../../verification/histories/history.ts';
import { linearize, type Model, type Timed } from '../../verification/histories/linearizability.ts';
import { shrink } from '../../verification/histories/shrink.ts';
import { planWorld } from '../../verification/histories/world.ts';

describe('the search for an order', () => {
  interface Op extends Timed {
    write?: number;
    read?: number;
  }
  const register: Model<number, Op> = {
    initial: 0,
    step: (state, { write, read }) => (write !== undefined ? [write] : read === state ? [state] : []),
  };
  const verdict = (...operations: Op[]) => linearize(register, operations).linearizable;

  it('the search lets concurrent calls take effect in any order, and no others', () => {
    const write = (value: number, calledAt: number, answeredAt: number) => ({ write: value, calledAt, answeredAt });
    const read = (value: number, calledAt: number, answeredAt: number) => ({ read: value, calledAt, answeredAt });
    expect(verdict(write(1, 0, 10), read(0, 1, 2), read(1, 3, 4))).toBe(true);
    expect(verdict(write(1, 0, 10), read(1, 1, 2), read(0, 3, 4))).toBe(false);
    expect(verdict(write(1, 0, 1), read(0, 2, 3))).toBe(false);
    expect(verdict(write(1, 0, 5), write(2, 0, 5), read(2, 6, 7), read(1, 8, 9))).toBe(false);
  });

  it('the search lets an unanswered call take effect later or never, and once', () => {
    const lost = { write: 1, calledAt: 0, answeredAt: Number.POSITIVE_INFINITY };
    expect(verdict(lost, { read: 0, calledAt: 1, answeredAt: 2 })).toBe(true);
    expect(verdict(lost, { read: 0, calledAt: 1, answeredAt: 2 }, { read: 1, calledAt: 100, answeredAt: 101 })).toBe(
      true,
    );
    expect(verdict({ read: 1, calledAt: 1, answeredAt: 2 }, { ...lost, calledAt: 3 })).toBe(false);
    const again = { write: 2, calledAt: 10, answeredAt: 11 };
    const reads = [1, 2, 1].map((read, index) => ({ read, calledAt: 5 + 10 * index, answeredAt: 6 + 10 * index }));
    expect(verdict(lost, again, ...reads)).toBe(false);
  });
});

describe('broken histories', () => {
  it('a broken history is shrunk to what breaks it', async () => {
    const steps = Array.from({ length: 40 }, (_, index) => index);
    const fails = async (some: number[]) => some.includes(7) && some.includes(31);
    expect(await shrink(steps, fails)).toEqual([7, 31]);
    expect(await shrink(steps, async () => true)).toEqual([]);
  });

  it('a broken history is shown in the order of its calls, with their faults', () => {
    const late = entry('acquire', { key: 'k' }, [2000, 2010], 'LeaseHeld', { fence: 3 });
    const lost = entry('release', { key: 'k' }, [1000], undefined, {}, { faults: ['UpdateItem lostReply'] });
    const [, first, second] = table([late, lost], new Set([2000])).split('\n');
    expect(first).toMatch(/^ {2}1000 +caller +1\.000 +never +release +key=k +no answer +UpdateItem lostReply$/);
    expect(second).toMatch(/^> 2000 +caller +2\.000 +2\.010 +acquire +key=k +LeaseHeld fence=3$/);
  });

  it('a broken history is reported with its clocks and the calls of its key', () => {
    const plan = { ...planWorld(1), clocks: [{ offsetMs: 5, rate: 1, steps: [{ atMs: 1500, offsetMs: -7 }] }] };
    const wrong = entry('acquire', { key: 'k' }, [2000, 2010]);
    const others = [entry('repairQueues', {}, [2100, 2110]), entry('release', { key: 'other' }, [2200, 2210])];
    const violations = [{ promise: 'of old', detail: 'broken', entries: [wrong] }];
    const text = report({ plan, entries: [wrong, ...others], violations });
    expect(text).toContain('Broken: of old\n  broken');
    expect(text).toContain('5 ms x 1.000000, set to -7 ms at 1.500.');
    expect(text).toMatch(/> 2000 .* acquire .*\n {2}2100 .* repairQueues .*$/);
  });
});
