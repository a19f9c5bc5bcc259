import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Progress } from '../../cli/src/progress.ts';
import type { HoldfastEvent } from '../../clients/typescript/src/events.ts';

let printed: string[];
let progress: Progress;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  printed = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => printed.push(String(text).trimEnd()) > 0);
  progress = new Progress(false);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const since = '2026-11-29T09:00:00.000Z';
const waits = (details: Partial<HoldfastEvent & { type: 'waiting' }> = {}) =>
  progress.waitingFor({
    ...{ type: 'waiting', key: 'k', holder: 'ann', holders: [], since, expiresAt: null, used: 1, limit: null },
    ...details,
  });

it('a wait prints its place at once, and then each minute if it changed', () => {
  waits();
  waits({ place: 3, waiting: 39 });
  for (const place of [3, 2, 2]) {
    vi.advanceTimersByTime(20_000);
    waits({ place, waiting: 38 });
  }
  for (let seconds = 0; seconds < 120; seconds += 20) {
    vi.advanceTimersByTime(20_000);
    waits({ place: 1, waiting: 100 });
  }
  expect(printed).toEqual([
    `holdfast: waiting since ${since}: k is held by ann`,
    `holdfast: waiting since ${since} at position 3 of 40: k is held by ann`,
    `holdfast: waiting since ${since} at position 2 of 39: k is held by ann`,
    `holdfast: waiting since ${since} at position 1: k is held by ann`,
  ]);
});

it('a wait for a permit says at once which key is in use', () => {
  const holders = [1, 2].map((fence) => ({
    holder: `h${fence}`,
    fence,
    mode: 'shared' as const,
    weight: 1,
    expiresAt: null,
  }));
  waits({ holders, used: 2, limit: 2, expiresAt: since });
  waits({ key: 'total', holders, used: 20, limit: 20 });
  expect(printed).toEqual([
    `holdfast: waiting since ${since}: k is in use: 2 of 2`,
    `holdfast: waiting since ${since}: total is in use: 20 of 20`,
  ]);
});
