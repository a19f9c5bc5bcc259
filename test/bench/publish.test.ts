import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { charts, figuresBlock, summaryBlock } from '../../bench/figures.ts';
import { inTurn } from '../../bench/in-turn.ts';
import type { Bar, Figure, Measurement, Verdict } from '../../bench/measurement.ts';
import { documents, mixed } from '../../bench/publish.ts';
import { keepOnly, type Results, readResults, record } from '../../bench/results.ts';

const DAY = '2026-11-26T20:00:00.000Z';
const HOLDFAST_AND_LIBRARIES = [
  ...['holdfast', 'holdfast domain', 'holdfast over HTTP', 'floor', '@deliveryhero/dynamodb-lock'],
  ...['dynamodb-lock-client', 'Java amazon-dynamodb-lock-client', 'Rust dynamodb-lease'],
];
const SERVERS = [
  ...['holdfast', 'etcd concurrency.Mutex', 'redlock-universal', 'redis-semaphore Mutex'],
  ...['redis-semaphore Semaphore of 1', 'Curator InterProcessMutex'],
];

function measured(figures: [what: string, value: string, median: number][], measuredAt = DAY) {
  return {
    ...{ title: 'a title', method: 'a method', quick: false, libraries: ['a library 1.0.0'], leftOut: [], measuredAt },
    machine: { machine: '2 x a processor', node: 'Node 24', sdk: 'sdk 3', emulator: 'dynoxide 1' },
    figures: figures.map(([what, value, median]) => ({ what, value, median, n: 5, unit: 'ms' })),
  };
}

/** The results of a whole run, with the figures that the tables of the comparison show. */
function wholeRun(): Results['measurements'] {
  return {
    cycles: measured(HOLDFAST_AND_LIBRARIES.map((name) => [`a cycle, ${name}`, '2.18 ms', 2.18])),
    handoff: measured(HOLDFAST_AND_LIBRARIES.map((name) => [name, '31 ms', 31])),
    contention: measured(HOLDFAST_AND_LIBRARIES.map((name) => [`64 contenders, ${name}`, '42.0 grants/s', 42])),
    fairness: measured(
      HOLDFAST_AND_LIBRARIES.map((name) => [`64 contenders, ${name}`, '8 : 7 of 480, 48 grants/s', 1.1]),
    ),
    servers: measured(
      ['', ', 5 ms away'].flatMap((away) =>
        SERVERS.flatMap((name): [string, string, number][] => [
          [`free lock, acquire and release, ${name}${away}`, '4.00 ms', away ? 20 : 4],
          [`hand-off, ${name}${away}`, '12 ms', away ? 12 : 3],
          [`64 at once, ${name}${away}`, '140 grants/s', 140],
          [`64 who come back, luckiest : unluckiest, ${name}${away}`, '20 : 19, 150 grants/s', 1.05],
        ]),
      ),
    ),
    faults: measured(
      ['holdfast client', ...SERVERS.slice(1)].flatMap((name): [string, string, number][] => [
        [`paused, double writes without fences, ${name}`, 'at most 2', 2],
        [`paused, double writes with fences, ${name}`, 'at most 0', 0],
        [`lost reply to acquire, ${name}`, 'another waits 23 ms; the caller gets an error', 23],
        [`restart without the disk, ${name}`, 'one holder at a time', 0],
      ]),
    ),
  };
}

type Judged = Pick<Bar, 'excuse'> & { verdict: Verdict };

describe('the tables of a whole run', () => {
  const results = { measurements: wholeRun() };

  it('the README has a row for Holdfast, each library and each server, and four columns', () => {
    const block = summaryBlock(results);
    const rows = block.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
    expect(rows.map((row) => row.split(' | ').length)).toEqual(rows.map(() => 5));
    expect(rows.map((row) => row.split(' | ')[0])).toEqual([
      ...['| ', '| Holdfast', '| @deliveryhero/dynamodb-lock (npm)', '| dynamodb-lock-client (npm)'],
      ...['| amazon-dynamodb-lock-client (Java)', '| dynamodb-lease (Rust)', '| etcd (concurrency.Mutex)'],
      ...['| Redis (redlock-universal)', '| Redis (redis-semaphore, fair)', '| ZooKeeper (Curator InterProcessMutex)'],
    ]);
    expect(rows[1]).toBe('| Holdfast | 2.18 | 31.0 | 42.0 | 8 : 7 |');
    expect(rows[6]).toBe('| etcd (concurrency.Mutex) | 4.00 | 3.00 | 140 | 20 : 19 |');
    expect(block).toContain('servers that you keep running');
  });

  it('the README with the tables of a whole run has at most 120 lines', async () => {
    const [readme] = await documents(results);
    expect(readme?.file).toBe('README.md');
    expect(readme?.written.trimEnd().split('\n').length).toBeLessThanOrEqual(120);
  });

  it('docs/benchmarks.md shows the comparison first, then the faults, then the details', () => {
    const block = figuresBlock(results);
    const at = [
      'Measured on 2026-11-26: 2 x a processor',
      '| Holdfast |',
      '### Under faults',
      '### Charts',
      '### Details',
    ];
    const found = at.map((text) => block.indexOf(text));
    expect(found).toEqual(found.toSorted((left, right) => left - right));
    expect(found).not.toContain(-1);
    expect(block).toContain(
      '| holdfast client | at most 2 | at most 0 | another waits 23 ms; the caller gets an error |',
    );
  });

  it('bars that are not met stand at the end with their reasons, and more than three of a measurement with the same reason share a line', () => {
    const missed = (count: number, rest: Judged) => {
      const figures = Array.from({ length: count }, (_, at) => {
        const bar = { measured: 1.102 + at, most: 1.1, ...rest };
        return { what: `figure ${at}`, value: '', bar };
      });
      return { ...measured([]), figures };
    };
    const explained: Judged = { verdict: 'explained', excuse: { why: 'a reason', upTo: 9 } };
    const measurements = { ...wholeRun(), few: missed(1, { verdict: 'missed' }), many: missed(4, explained) };
    expect(figuresBlock({ measurements })).toContain(
      'Bars that are not met:\n\n- figure 0: 1.102 (bar: at most 1.1): no reason found yet\n- 4 figures of many: 1.102 to 4.102 (bar: at most 1.1): a reason',
    );
  });

  it('init has a row for each function, with a column for each size of memory', () => {
    const init = measured([
      ['init, acquire, 128 MB', '700 ms / 650 alone', 700],
      ['init ratio, acquire, 128 MB', '1.08', 1.08],
      ['init, acquire, 1,769 MB', '40 ms / 38 alone', 40],
      ['init ratio, acquire, 1,769 MB', '1.05', 1.05],
      ['peak memory, acquire', '66 MiB / 64 alone', 66],
      ['bundle, acquire', '523 kB: zod 33', 523],
      ['bundle, whoami', '34 kB: zod 33', 34],
    ]);
    const block = figuresBlock({ measurements: { ...wholeRun(), init } });
    expect(block).toContain(
      '| acquire | 700 ms / 650 alone, x 1.08 |  | 40 ms / 38 alone, x 1.05 | 66 MiB / 64 alone | 523 kB: zod 33 |',
    );
    expect(block).toContain('| whoami |  |  |  |  | 34 kB: zod 33 |');
  });

  it('the charts of waiting callers show the servers beside the libraries, with figures of the same network delay', () => {
    const drawn = Object.fromEntries(
      charts(results).map(({ file, spec }) => {
        const { data } = spec as { data: { values: { contestant: string; median: number }[] } };
        return [file, new Map(data.values.map(({ contestant, median }) => [contestant, median]))];
      }),
    );
    expect(drawn['bench/handoff.svg']?.get('holdfast')).toBe(31);
    expect(drawn['bench/handoff.svg']?.get('etcd concurrency.Mutex')).toBe(3);
    expect(drawn['bench/contention.svg']?.get('redlock-universal')).toBe(140);
    expect(drawn['bench/servers.svg']?.get('etcd concurrency.Mutex')).toBe(12);
  });
});

describe('figures of several runs', () => {
  it('figures of one run have one line with the day and the machine', () => {
    const results = { measurements: wholeRun() };
    expect(mixed(results)).toEqual([]);
    expect(figuresBlock(results).match(/Measured on/g)).toHaveLength(1);
  });

  it('the page and the output of publish name measurements of another day', () => {
    const older = measured([['a figure', '1 ms', 1]], '2026-11-21T20:00:00.000Z');
    const results = { measurements: { ...wholeRun(), line: older } };
    expect(mixed(results).join('\n')).toMatch(/Of another run: line\. Measured on 2026-11-21/);
    expect(figuresBlock(results)).toMatch(/Of another run: line\. Measured on 2026-11-21/);
  });
});

const measurement = (name: string): Measurement => ({
  ...{ name, title: `the title of ${name}`, method: 'a method' },
  run: async () => [],
});
const figure = (what: string): Figure => ({ what, value: '1 ms', median: 1, n: 1 });

describe('a run of several measurements', () => {
  it('a measurement that fails or takes too long is named at the end, and the next measurements run', async () => {
    const quiet = vi.spyOn(console, 'error').mockImplementation(() => {});
    const played: string[] = [];
    try {
      const { failed, missedBars } = await inTurn(
        ['broken', 'endless', 'slow', 'good'].map(measurement),
        async ({ name }) => {
          played.push(name);
          if (name === 'broken') throw new Error('no');
          if (name === 'endless') await delay(1000);
          return [{ ...figure(name), bar: { measured: 2, most: name === 'good' ? 1 : 3 } }];
        },
        100,
      );
      expect(played).toEqual(['broken', 'endless', 'slow', 'good']);
      expect(failed).toEqual(['broken', 'endless']);
      expect(missedBars.map(({ what }) => what)).toEqual(['good']);
    } finally {
      quiet.mockRestore();
    }
  });

  it('the measurements of a run are recorded with the date of the run, and measurements that no longer exist are removed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-results-'));
    const file = join(folder, 'results.json');
    const run = { measuredAt: DAY, libraries: [], leftOut: [], quick: true };
    try {
      for (const name of ['first', 'second'])
        await record(file, { measurement: measurement(name), figures: [figure(name)] }, run);
      const { measurements } = await readResults(file);
      expect(Object.values(measurements).map(({ measuredAt }) => measuredAt)).toEqual([DAY, DAY]);
      await keepOnly(file, ['second', 'third']);
      expect(Object.keys(JSON.parse(await readFile(file, 'utf8')).measurements)).toEqual(['second']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
