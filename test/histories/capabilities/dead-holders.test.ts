import { describe, expect, it } from 'vitest';
import { deadHolderGone } from '../../../verification/histories/capabilities/dead-holders.model.ts';
import { BEGIN } from '../../../verification/histories/clocks.ts';
import { at, entry, facts } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const KEY = 'w-q0';
const FAR_MS = 400 * 86_400_000;
const held = (lastsMs: number) => ({ holder: 'dead', fence: BEGIN + 1000, expiresAt: at(1000 + lastsMs) });

describe('the holder of a bound grant whose execution has ended', () => {
  const asks = entry(
    'acquire',
    { key: KEY, holder: 'dead', bound: true, callbackId: 'x', taskToken: 'x' },
    [900, 1010],
    'ok',
  );
  const task = (more: object = {}) =>
    entry('task', { key: KEY, holder: 'dead', bound: true, ...more }, [900, 1010], 'ok', {
      ...held(FAR_MS),
      bound: true,
    });
  const ends = entry('executionEnds', { key: KEY, holder: 'dead', status: 'FAILED' }, [20_000, 20_000]);
  const refused = (ms: number, { lastsMs = FAR_MS, faults = [] as string[] } = {}) =>
    entry('acquire', { key: KEY, holder: `z${ms}` }, [ms, ms + 10], 'LeaseHeld', held(lastsMs), { faults });
  const check = (...entries: Entry[]) => deadHolderGone(entries, KEY, facts).map(({ promise }) => promise);
  const GONE = ['a dead bound holder is gone two minutes after a caller or task wants the key'];

  it('a dead bound holder is refused by the checker if a caller meets it two minutes after another caller', () => {
    expect(check(asks, task(), ends, refused(100_000), refused(220_000))).toEqual(GONE);
    expect(check(asks, task(), ends, refused(100_000), refused(219_000))).toEqual([]);
    expect(check(asks, task(), ends, refused(220_000))).toEqual([]);
    expect(check(asks, task(), refused(100_000), refused(220_000))).toEqual([]);
  });

  it('a dead bound holder may stay if the first call asked too early, was struck, or met a grace or a target', () => {
    expect(check(asks, task(), ends, refused(40_000), refused(220_000))).toEqual([]);
    expect(check(asks, task(), ends, refused(100_000, { faults: ['UpdateItem throttled'] }), refused(220_000))).toEqual(
      [],
    );
    expect(check(asks, task(), ends, refused(100_000), refused(220_000, { lastsMs: 230_000 }))).toEqual([]);
    expect(check(asks, task({ target: 'arn' }), ends, refused(100_000), refused(220_000))).toEqual([]);
  });
});
