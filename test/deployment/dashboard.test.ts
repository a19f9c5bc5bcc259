import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod/mini';
import { ERRORS, type ErrorCode } from '../../shared/errors.ts';
import { KINDS } from '../../shared/expiry/kinds.ts';
import { lambdaContext, throughTask } from '../support/stack/adapters.ts';
import { capturedLog } from '../support/stack/log.ts';
import { functions, resourcesOfType, STAGE, TABLES, withParameters } from '../support/stack/template.ts';
import { ManualClock } from '../support/time/clock.ts';

interface Drawn {
  title: string;
  metrics: (string | Record<string, unknown>)[][];
}
interface Watched {
  Namespace: string;
  MetricName: string;
  Dimensions: { Name: string; Value: string }[];
}
interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
  properties: Drawn;
}

/** The widgets as CloudFormation writes them. */
function dashboardOf(parameters: Record<string, string> = {}): Placed[] {
  const [[, resource] = []] = resourcesOfType('AWS::CloudWatch::Dashboard', withParameters(parameters));
  const { DashboardBody: body } = resource?.Properties ?? {};
  return JSON.parse(typeof body === 'string' ? body : body['Fn::Sub']).widgets;
}

/** A metric without how it is drawn: namespace, name, dimensions. */
const metricsOf = ({ properties }: Placed) =>
  properties.metrics.map((parts) => parts.filter((part) => typeof part === 'string'));
const all = () => dashboardOf().flatMap(metricsOf);
const asText = (parts: string[]) => parts.join(' ');

const lines = capturedLog();

/** The metrics in the lines of the log, each with its lists of dimensions. */
function emitted(): string[] {
  return lines
    .flatMap((text) => text.trim().split('\n'))
    .map((line) => JSON.parse(line))
    .flatMap((line) =>
      (line._aws?.CloudWatchMetrics ?? []).flatMap(({ Namespace, Dimensions, Metrics }: Directive) =>
        Metrics.flatMap(({ Name }) =>
          Dimensions.map((names) => asText([Namespace, Name, ...names.flatMap((name) => [name, String(line[name])])])),
        ),
      ),
    );
}

interface Directive {
  Namespace: string;
  Dimensions: string[][];
  Metrics: { Name: string }[];
}

describe('the dashboard', () => {
  it('the dashboard and the alarms name only metrics and dimensions that the functions write', async () => {
    vi.stubEnv('METRICS_NAMESPACE', 'Holdfast');
    vi.stubEnv('SERVICE_NAME', `holdfast-${STAGE}`);
    vi.stubEnv('LOG_LEVEL', 'INFO');
    vi.resetModules();
    await callEverything();
    const written = new Set(emitted());
    vi.restoreAllMocks();
    const drawn = all().filter(([namespace]) => namespace === 'Holdfast');
    expect(drawn.length).toBeGreaterThan(30);
    for (const metric of drawn) expect([...written]).toContain(asText(metric));
    // Each function has these metrics, so its name is left out of the comparison.
    const names = [...written].map((metric) => metric.replace(/ function \w+$/, ' function'));
    const watched = resourcesOfType('AWS::CloudWatch::Alarm', withParameters({ alarms: 'all' })).flatMap(
      ([, { Properties }]): Watched[] =>
        Properties.Metrics?.flatMap(
          ({ MetricStat }: { MetricStat?: { Metric: Watched } }) => MetricStat?.Metric ?? [],
        ) ?? [Properties],
    );
    for (const { Namespace, MetricName, Dimensions } of watched.filter((one) => one.Namespace === 'Holdfast'))
      expect(names).toContain(
        asText([
          Namespace,
          MetricName,
          ...Dimensions.flatMap(({ Name, Value }) => (Name === 'function' ? Name : [Name, Value])),
        ]),
      );
  });

  it('the dashboard draws only functions, tables, indexes and the API of the stack', () => {
    const known = new Map<string, Set<string>>([
      ['AWS/Lambda', new Set(functions.map(({ name }) => `FunctionName holdfast-${STAGE}-${name}`))],
      ['AWS/ApiGateway', new Set([`ApiId \${HttpApi}`])],
      [
        'AWS/DynamoDB',
        new Set(
          resourcesOfType('AWS::DynamoDB::Table').flatMap(([, { Properties }]) => [
            `TableName ${Properties.TableName}`,
            ...(Properties.GlobalSecondaryIndexes ?? []).map(
              ({ IndexName }: { IndexName: string }) =>
                `TableName ${Properties.TableName} GlobalSecondaryIndexName ${IndexName}`,
            ),
          ]),
        ),
      ],
    ]);
    const names: Record<string, string[]> = {
      'AWS/Lambda': ['Throttles', 'ConcurrentExecutions'],
      'AWS/ApiGateway': ['Count', '4xx', '5xx', 'Latency'],
      'AWS/DynamoDB': ['ReadThrottleEvents', 'WriteThrottleEvents'],
    };
    const ofAws = all().filter(([namespace]) => namespace !== 'Holdfast');
    for (const [namespace = '', name, ...dimensions] of ofAws) {
      expect(names[namespace], namespace).toContain(name);
      expect([...(known.get(namespace) ?? [])]).toContain(asText(dimensions));
    }
    const throttles = ofAws.filter(([, name]) => name === 'Throttles');
    expect(throttles).toHaveLength(functions.length);
    const tables = ofAws.filter(([namespace]) => namespace === 'AWS/DynamoDB').map(([, , , table]) => table);
    expect(new Set(tables)).toEqual(new Set(Object.values(TABLES)));
  });

  it('the dashboard has a place for each question of an operator, without overlap', () => {
    const widgets = dashboardOf();
    expect(widgets.map(({ properties }) => properties.title)).toEqual([
      ...['Grants', 'Waiting time (ms)', 'Hand-off (ms)', 'Parked', 'Age of the oldest waiter (s)', 'Expired records'],
      ...['Refusals by code', 'Faults', 'API requests and latency (ms)'],
      ...['Throttled functions', 'Throttled tables', 'Environments in use'],
    ]);
    const places = widgets.map(({ x, y }) => `${x} ${y}`);
    expect(new Set(places).size).toBe(widgets.length);
    for (const { x, width } of widgets) expect(x + width).toBeLessThanOrEqual(24);
    const codes = widgets
      .filter(({ properties: { title } }) => ['Refusals by code', 'Faults'].includes(title))
      .flatMap(metricsOf)
      .map(([, name]) => name);
    expect(codes.toSorted()).toEqual([...Object.keys(ERRORS), 'Faults'].toSorted());
  });

  it('the dashboard draws tables that parameters name, and can be left out', () => {
    const named = dashboardOf({ leasesTable: 'shared-leases' }).flatMap(metricsOf).map(asText);
    expect(named).toContain('AWS/DynamoDB WriteThrottleEvents TableName shared-leases');
    expect(named.join()).not.toContain(TABLES.leases);
    expect(resourcesOfType('AWS::CloudWatch::Dashboard', withParameters({ dashboard: 'false' }))).toEqual([]);
  });
});

/** Makes the real adapters, the line and the report write each of their metrics. */
async function callEverything(): Promise<void> {
  // Loaded again like the log, because both modules read the environment when they are loaded.
  const { lambdaFunction } = await import('../../shared/lambda/function.ts');
  const { HoldfastError } = await import('../../shared/errors.ts');
  const { lineWorld } = await import('../support/worlds/line.ts');
  const { rateHandlers } = await import('../support/worlds/rates.ts');
  const { measureReport } = await import('../../shared/expiry/metrics.ts');
  const refusing = lambdaFunction({
    name: 'publish',
    input: z.strictObject({ code: z.string() }),
    nameFields: {},
    run: async ({ code }) => {
      throw new HoldfastError(code as ErrorCode, 'refused');
    },
    logged: [],
  });
  for (const code of Object.keys(ERRORS)) await expect(refusing({ code }, lambdaContext())).rejects.toThrow(code);
  const { handlers, steps, clock, dependencies } = await lineWorld();
  try {
    const key = 'k';
    const { body } = await throughTask(handlers.acquire, { key, holder: 'caller' });
    const taskToken = steps.newTask().token;
    await throughTask(handlers.acquire, { key, holder: 'task', taskToken });
    clock.advance(10);
    await throughTask(handlers.repairQueues, {});
    await throughTask(handlers.repairQueues, {}, lambdaContext(5000)); // which is cut short
    await throughTask(handlers.release, { key, leaseId: body.leaseId });
    const { rateReserve } = rateHandlers(dependencies);
    await throughTask(rateReserve, { key, holder: 'caller', rates: [{ limit: 1, per: '1s' }] });
  } finally {
    steps.stop();
  }
  const expired = Object.fromEntries(KINDS.map((kind) => [kind, { count: 1, oldestAgeSeconds: 1 }]));
  const heldByNamespace = [{ namespace: 'team-a', leases: 11 }];
  measureReport(new ManualClock(), 10)({ expired, neverDeletable: 1, heldByNamespace } as never);
}
