import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type AttributeValue, DescribeTableCommand, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, inject, it } from 'vitest';
import { coldCases, WITHOUT_CLIENTS } from '../../bench/cold.cases.ts';
import { startCounter } from '../../bench/counter.ts';
import { charts } from '../../bench/figures.ts';
import { itemBytes } from '../../bench/item-bytes.ts';
import {
  type Figure,
  type Measurement,
  median,
  ratio,
  statistics,
  verdict,
  withSlack,
} from '../../bench/measurement.ts';
import { documents } from '../../bench/publish.ts';
import { keepOnly, readResults, record } from '../../bench/results.ts';
import { withScaleTables } from '../../bench/scale-doc.ts';
import { doubleWrites } from '../../bench/servers/store.ts';
import { overBudget } from '../../build/budget.ts';
import { newTable, testClient } from '../support/emulators/aws.ts';
import { dynamodbEndpoint } from '../support/emulators/endpoint.ts';
import { isFull } from '../support/time/rounds.ts';

const results = await readResults();
const figures = Object.values(results.measurements).flatMap(({ figures }) => figures);

describe('the figures of bench/results.json', () => {
  it('the documents quote the figures of bench/results.json', async () => {
    for (const { file, current, written } of await documents(results)) expect(current, file).toBe(written);
  });

  it('the charts in the documents show the figures of bench/results.json', async () => {
    const drawn = charts(results);
    expect(drawn.length).toBeGreaterThan(0);
    for (const { file, digest } of drawn) expect(await readFile(file, 'utf8'), file).toContain(digest);
  });

  it('each figure of bench/results.json meets its bar, or says why not', () => {
    for (const { what, bar } of figures) {
      if (!bar) continue;
      expect(bar.verdict, what).toBe(verdict(bar));
      expect(bar.verdict, what).not.toBe('missed');
    }
  });

  it('the figures name their samples, time and place, and what ran beside them', () => {
    for (const { what, n, median } of figures)
      expect({ what, n: n ?? 0, median }).toEqual({ what, n: expect.any(Number), median: expect.any(Number) });
    for (const { measuredAt, machine, libraries, figures } of Object.values(results.measurements)) {
      expect(Date.parse(measuredAt)).toBeGreaterThan(0);
      expect(Object.values(machine).every(Boolean)).toBe(true);
      if (figures.some(({ toBestLibrary }) => toBestLibrary !== undefined))
        expect(libraries).toContain('@deliveryhero/dynamodb-lock 2.0.0');
    }
  });
});

it('each function is compared with bare clients, unless it has no AWS client', async () => {
  const { functions } = inject('service');
  const cases = coldCases('');
  const unknown = functions.filter(({ name }) => !cases[name] && !WITHOUT_CLIENTS.includes(name));
  expect(unknown.map(({ name }) => name)).toEqual([]);
});

it('docs/scale.md quotes what the arithmetic prints', async () => {
  const document = await readFile('docs/scale.md', 'utf8');
  expect(withScaleTables(document)).toBe(document);
});

describe('statistics', () => {
  it('the statistics are the median and range of medians, and the 99th percentile', () => {
    const found = statistics([[1, 2, 30], [4, 5, 6], Array.from({ length: 100 }, (_, at) => at)]);
    expect(found).toEqual({ n: 106, median: 5, p99: 98, spread: [2, 49] });
    expect(median([4, 1, 3, 2])).toBe(2);
    expect(statistics([[]]).median).toBeNaN();
  });

  it('a bar is judged from both sides, and NaN misses it', () => {
    const judged = (measured: number, upTo?: number) =>
      verdict({ measured, min: 1, max: 2, ...(upTo !== undefined && { excuse: { upTo, why: 'a reason' } }) });
    expect([0.99, 1, 2, 2.01, Number.NaN].map((measured) => judged(measured))).toEqual([
      ...['missed', 'kept', 'kept', 'missed', 'missed'],
    ]);
    expect([judged(3, 3), judged(2, 3), judged(3.01, 3), judged(Number.NaN, 3)]).toEqual([
      ...['explained', 'kept', 'missed', 'missed'],
    ]);
    const few = (measured: number) => verdict({ measured, min: 2, excuse: { upTo: 1, why: 'a reason' } });
    expect([few(1.9), few(0.9)]).toEqual(['explained', 'missed']);
  });

  it('few samples are held to looser bars', () => {
    const { bar } = withSlack(ratio('a ratio', [1, 1.3, 1.2], { max: 1.1, min: 14 }));
    expect(bar).toEqual({ measured: 1.2, max: 1.54, min: 10 });
  });
});

describe('the counter between contestant and emulator', () => {
  it('the counter counts a lost condition as a write, and skips requests about tables', async () => {
    const table = await newTable('leases');
    const counter = await startCounter(dynamodbEndpoint());
    const dynamodb = testClient({ endpoint: counter.endpoint });
    try {
      const Item = { key: { S: 'counted' } };
      const put = () =>
        new PutItemCommand({ TableName: table, Item, ConditionExpression: 'attribute_not_exists(lease_id)' });
      await dynamodb.send(new DescribeTableCommand({ TableName: table }));
      await dynamodb.send(put());
      expect(counter.take()).toEqual({ requests: 1, writeUnits: 1, readUnits: 0 });
      const lost = new PutItemCommand({ ...put().input, ConditionExpression: 'attribute_exists(lease_id)' });
      await expect(dynamodb.send(lost)).rejects.toThrow('conditional');
      await dynamodb.send(new GetItemCommand({ TableName: table, Key: Item }));
      await dynamodb.send(new GetItemCommand({ TableName: table, Key: Item, ConsistentRead: true }));
      expect(counter.take()).toEqual({ requests: 3, writeUnits: 1, readUnits: 1.5 });
      expect(counter.take()).toEqual({ requests: 0, writeUnits: 0, readUnits: 0 });
    } finally {
      dynamodb.destroy();
      await counter.stop();
    }
  });
});

describe('a lost condition', () => {
  it('a lost condition is measured by the size that DynamoDB documents for each type', () => {
    const sizeOf = (value: AttributeValue) => itemBytes({ a: value }) - 1;
    expect(sizeOf({ S: 'né' })).toBe(3);
    expect(['0', '7', '10', '100', '12345', '-12345', '1732285137092'].map((N) => sizeOf({ N }))).toEqual([
      ...[1, 2, 2, 2, 4, 5, 8],
    ]);
    expect([sizeOf({ BOOL: true }), sizeOf({ NULL: true })]).toEqual([1, 1]);
    expect(sizeOf({ SS: ['a', 'bc'] })).toBe(3);
    expect(sizeOf({ L: [{ S: 'abc' }, { N: '1' }] })).toBe(3 + 1 + 3 + 1 + 2);
    expect(sizeOf({ M: { key: { S: 'abc' } } })).toBe(3 + 1 + 3 + 3);
  });
});

describe('the size budget', () => {
  it('the size budget names the part of a function that is too large', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-budget-'));
    try {
      await writeFile(join(folder, 'index.mjs'), `import"./loaded.mjs";${' '.repeat(479)}`);
      await writeFile(join(folder, 'loaded.mjs'), ' '.repeat(1500));
      await writeFile(join(folder, 'later.mjs'), ' '.repeat(2000));
      const functions = ['small', 'large', 'new'].map((name) => ({ name, bundle: folder }));
      const complaints = await overBudget(functions, {
        small: { loaded: 2, all: 4 },
        large: { loaded: 1.9, all: 4 },
      });
      expect(complaints).toEqual([
        'large: loaded is 2.0 kB, over its budget of 1.9 kB',
        'new has no budget: add "new": { "loaded": 3, "all": 5 } to build/size-budget.json',
      ]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

const measurement = (name: string): Measurement => ({
  ...{ name, title: `the title of ${name}`, method: 'a method' },
  run: async () => [],
});
const figure = (what: string): Figure => ({ what, value: '1 ms', median: 1, n: 1 });

describe('a run of several measurements', () => {
  it('measurements are recorded with the date, and those that no longer exist are removed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-results-'));
    const file = join(folder, 'results.json');
    const run = { measuredAt: '2026-11-26T20:00:00.000Z', libraries: [], leftOut: [], quick: true };
    try {
      for (const name of ['first', 'second'])
        await record(file, { measurement: measurement(name), figures: [figure(name)] }, run);
      const { measurements } = await readResults(file);
      expect(Object.values(measurements).map(({ measuredAt }) => measuredAt)).toEqual([run.measuredAt, run.measuredAt]);
      await keepOnly(file, ['second', 'third']);
      expect(Object.keys(JSON.parse(await readFile(file, 'utf8')).measurements)).toEqual(['second']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe('double writes at a store', () => {
  it.each<[string, fences: (number | undefined)[], without: number, withFences: number | undefined]>([
    ['are those of the first holder after the first write of the second', [1, 2, 1, 1], 2, 0],
    ['are taken by a store with fences if the second fence is no higher', [1, 1, 1], 1, 1],
    ['have no count with fences if the lock has no fences', [undefined, undefined, undefined], 1, undefined],
    ['are none if the second holder never wrote', [1], 0, 0],
  ])('double writes %s', (_, fences, without, withFences) => {
    const writes = fences.map((fence, at) => ({
      writer: at === 1 ? 'b' : 'a',
      at: 0,
      ...(fence !== undefined && { fence }),
    }));
    expect(doubleWrites(writes, 'a', 'b')).toEqual({ without, withFences });
  });
});

describe.runIf(isFull)('npm run bench', () => {
  const bench = (...options: string[]) => node('bench/run.ts', ...options);

  it('npm run bench prints its measurements', async () => {
    const { stdout } = await bench('--help');
    for (const name of Object.keys(results.measurements)) expect(stdout).toMatch(new RegExp(`^ +${name} `, 'm'));
  });

  it.each([
    [['--only', 'nothing'], 'npm run bench: there is no measurement nothing; see --help\n'],
    [['--fast'], "npm run bench: Unknown option '--fast'\n"],
  ])('npm run bench refuses %j in one line', async (options, line) => {
    await expect(bench(...options)).rejects.toMatchObject({ code: 1, stderr: line });
  });

  it('npm run bench ends the processes that it started when it is stopped', async () => {
    const parent = `
      const { endsWithUs } = await import('./bench/children.ts');
      const { spawn } = await import('node:child_process');
      console.log(endsWithUs(spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })).pid);
      process.exit(130);`;
    const { stdout } = (await node('--input-type=module', '--eval', parent).catch((error) => error)) as Output;
    const pid = Number(stdout);
    expect(pid).toBeGreaterThan(0);
    for (let tries = 0; isRunning(pid); tries++) {
      expect(tries).toBeLessThan(200);
      await delay(10); // a process takes a moment to end
    }
  });
});

interface Output {
  stdout: string;
  stderr: string;
}

const node = (...parameters: string[]): Promise<Output> => promisify(execFile)(process.execPath, parameters);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
