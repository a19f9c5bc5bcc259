import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  entered,
  type Ledger,
  nextSeed,
  type Played,
  readLedger,
  summary,
  writeLedger,
} from '../../verification/campaign/ledger.ts';

const played = (seed: number, histories: number, more: Partial<Played> = {}): Played => ({
  seed,
  histories,
  operations: histories * 50,
  permits: histories * 2,
  beyondBound: 1,
  failed: null,
  ...more,
});

it('the ledger of histories adds up each commit, and never repeats a seed', () => {
  const failed = { seed: 1_000_120, promises: ['of old'] };
  let ledger: Ledger = [];
  expect(nextSeed(ledger)).toBeLessThan(2 ** 30);
  ledger = entered(ledger, 'a', played(1_000_000, 100));
  ledger = entered(ledger, 'a', played(1_000_200, 100));
  expect(ledger).toMatchObject([
    {
      commit: 'a',
      seeds: [
        [1_000_000, 1_000_099],
        [1_000_200, 1_000_299],
      ],
      histories: 200,
      operations: 10_000,
      beyondBound: 2,
      broken: [],
    },
  ]);
  ledger = entered(ledger, 'a', played(1_000_100, 100, { failed }));
  expect(ledger[0]).toMatchObject({ seeds: [[1_000_000, 1_000_299]], broken: [failed] });
  ledger = entered(ledger, 'b', played(nextSeed(ledger), 10));
  expect(ledger[1]).toMatchObject({ commit: 'b', seeds: [[1_000_300, 1_000_309]] });
  ledger = entered(ledger, 'b', played(nextSeed(ledger), 20, { only: ['permits'] }));
  ledger = entered(ledger, 'b', played(nextSeed(ledger), 5, { only: ['permits'] }));
  expect(ledger).toHaveLength(3);
  expect(ledger[2]).toMatchObject({ commit: 'b', only: ['permits'], histories: 25, permits: 50 });
  expect(summary(ledger)).toContain(
    'b: 25 histories of permits (2 with clocks beyond the bound), 1250 calls, 50 permits,',
  );
  expect(entered(ledger, 'b', played(2_000_000, 0))).toEqual(ledger);
  expect(summary(ledger)).toContain('seed 1000120: of old');
  expect(summary(ledger)).toContain('335 histories in all');
});

it('the ledger of histories is read as it was written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ledger-'));
  const file = join(folder, 'new', 'ledger.json');
  expect(await readLedger(file)).toEqual([]);
  const ledger = entered([], 'a', played(5, 3));
  await writeLedger(file, ledger);
  expect(await readLedger(file)).toEqual(ledger);
  await rm(folder, { recursive: true });
});
