import { readFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { throughTask } from '../support/stack/adapters.ts';
import { capturedLog } from '../support/stack/log.ts';
import { resourcesOfType, withParameters } from '../support/stack/template.ts';

interface Line extends Record<string, unknown> {
  _aws?: { CloudWatchMetrics: { Dimensions: string[][]; Metrics: { Name: string }[] }[] };
}

const section = async () =>
  (await readFile('docs/cost.md', 'utf8')).split(/^## /m).find((one) => one.startsWith('An idle stage')) ?? '';

/** The rows of the table: what is charged, its amount, the price of a unit and the cost a month. */
async function rows(): Promise<{ what: string; units: number; price: number; cost: number }[]> {
  const numbers = (cell = '') => Number(cell.replaceAll(/[$,]/g, '').match(/[\d.]+/)?.[0]);
  return [...(await section()).matchAll(/^\| ([^|]+) \| ([\d,]+)[^|]* \| (\$[^|]+) \| (\$[\d.]+) \|$/gm)].map(
    ([, what = '', units, price = '', cost]) => ({
      ...{ what, units: numbers(units), cost: numbers(cost) },
      price: numbers(price) / (/million/.test(price) ? 1e6 : /thousand/.test(price) ? 1000 : 1),
    }),
  );
}

const unitsOf = async (what: RegExp) => (await rows()).find((row) => what.test(row.what))?.units;

/** The number of metrics in all alarms, by which CloudWatch charges. */
const alarmMetrics = (parameters: Record<string, string>) =>
  resourcesOfType('AWS::CloudWatch::Alarm', withParameters(parameters)).flatMap(([, { Properties }]) =>
    (Properties.Metrics ?? [Properties]).filter(({ Expression }: { Expression?: string }) => Expression === undefined),
  ).length;

describe('the cost of an idle stage in docs/cost.md', () => {
  const lines = capturedLog();
  beforeEach(() => {
    vi.stubEnv('METRICS_NAMESPACE', 'Holdfast');
    vi.stubEnv('SERVICE_NAME', 'holdfast');
    vi.resetModules(); // the log reads its environment when it is loaded
  });

  it('the cost of an idle stage counts the alarms that exist by default', async () => {
    expect(await unitsOf(/^metrics of alarms/)).toBe(alarmMetrics({}));
    const [, all] = /`alarms=all` watches (\d+) metrics/.exec(await section()) ?? [];
    expect(Number(all)).toBe(alarmMetrics({ alarms: 'all' }));
    expect(alarmMetrics({ alarms: 'none' })).toBe(0);
  });

  it("the cost of an idle stage counts the schedules' metrics and a report's objects", async () => {
    const { expiryWorld } = await import('../support/worlds/expiry.ts');
    const { lineWorld } = await import('../support/worlds/line.ts');
    const { measureReport } = await import('../../shared/expiry/metrics.ts');
    const { ManualClock } = await import('../support/time/clock.ts');
    const world = await expiryWorld({ segments: 4, measure: measureReport(new ManualClock(), 10_000) });
    const { handlers, steps } = await lineWorld();
    try {
      await world.report(); // whose requests are noted
      await throughTask(world.handlers().report, {});
      await throughTask(handlers.repairQueues, {});
    } finally {
      steps.stop();
    }
    vi.restoreAllMocks();
    const written = lines
      .flatMap((text) => text.trim().split('\n'))
      .map((line): Line => JSON.parse(line))
      .flatMap(({ _aws, ...line }) =>
        (_aws?.CloudWatchMetrics ?? []).flatMap(({ Dimensions, Metrics }) =>
          Metrics.flatMap(({ Name }) =>
            Dimensions.map((names) => [Name, ...names.map((name) => line[name])].join(' ')),
          ),
        ),
      );
    const metrics = [...new Set(written)].toSorted();
    expect(metrics).toEqual([
      ...['ReportCompleted holdfast', 'Success holdfast', 'Success holdfast repairQueues', 'Success holdfast report'],
    ]);
    expect(await unitsOf(/^metrics that the schedules write/)).toBe(metrics.length);
    const puts = world.objects.sent.filter((command) => command === 'PutObject').length;
    expect(await unitsOf(/^objects that reports write/)).toBe(puts * REPORTS);
  });

  it('an idle stage costs the sum of its rows, less than five dollars', async () => {
    const all = await rows();
    expect(all.length).toBeGreaterThan(5);
    for (const { what, units, price, cost } of all) expect(units * price, what).toBeCloseTo(cost, 2);
    const [, sum] = /^\| \*\*sum\*\* \|[^$]*\*\*\$([\d.]+)\*\* \|$/m.exec(await section()) ?? [];
    expect(all.reduce((before, { cost }) => before + cost, 0)).toBeCloseTo(Number(sum), 2);
    expect(Number(sum)).toBeLessThan(5);
  });
});

/** Every 15 minutes in a month of 730 hours. */
const REPORTS = 4 * 730;
