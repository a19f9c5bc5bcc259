import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { alarms as everyAlarm } from '../../infrastructure/alarms.ts';
import {
  CAPABILITIES,
  type Capability,
  functions,
  functionsOf,
  lambdas,
  resourcesOfType,
  STAGE,
  withParameters,
} from '../support/stack/template.ts';

/** The capabilities that have their own table. */
const WITH_TABLE = ['leases', 'commits', 'nameservice'] as const;

/** The functions of leases that have alarms of their own, because an alarm takes ten metrics. */
const QUEUE = ['repairQueues', 'executionEnded'];
const OPERATOR = ['breakLease', 'readLeases', 'cancelWaiter', 'capKey', 'runNext'];

const withAll = withParameters({ alarms: 'all' });

describe('alarms', () => {
  interface Query {
    Id: string;
    Expression?: string;
    ReturnData?: boolean;
    MetricStat?: { Metric: { Namespace: string; MetricName: string; Dimensions: { Name: string; Value: unknown }[] } };
  }
  const alarms = (of = withAll) =>
    resourcesOfType('AWS::CloudWatch::Alarm', of).map(([id, { Properties }]) => ({ id, ...Properties }));
  const queries = (id: string): Query[] => alarms().find((alarm) => alarm.id === id)?.Metrics ?? [];
  const metrics = (id: string) => queries(id).flatMap(({ MetricStat }) => MetricStat?.Metric ?? []);
  const refs = (capability: Capability, watched = functionsOf(capability)) => {
    const names = watched.map(({ name }) => name);
    return lambdas().flatMap(({ name, logicalId }) => (names.includes(name) ? [{ Ref: logicalId }] : []));
  };

  it.each([
    ['leases', 'LeaseErrorsAlarm', (name: string) => ![...QUEUE, ...OPERATOR].includes(name)],
    ['leases', 'OperatorErrorsAlarm', (name: string) => OPERATOR.includes(name)],
    ['leases', 'QueueErrorsAlarm', (name: string) => QUEUE.includes(name)],
    ['once', 'OnceErrorsAlarm', () => true],
    ['rates', 'RateErrorsAlarm', () => true],
    ['commits', 'CommitErrorsAlarm', () => true],
    ['nameservice', 'NameserviceErrorsAlarm', () => true],
    ['expiry', 'ExpiryErrorsAlarm', () => true],
    ['contract', 'ContractErrorsAlarm', () => true],
  ] as const)(
    'an alarm counts crashes of each function of %s, without errors of tasks: %s',
    (capability, id, isWatched) => {
      const functions = functionsOf(capability).filter(({ name }) => isWatched(name));
      const errors = metrics(id).filter(({ Namespace }) => Namespace === 'AWS/Lambda');
      expect(errors.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'Errors'));
      expect(errors.map(({ Dimensions }) => Dimensions)).toEqual(
        refs(capability, functions).map((Value) => [{ Name: 'FunctionName', Value }]),
      );
      const failures = metrics(id).filter(({ Namespace }) => Namespace === 'Holdfast');
      expect(failures.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'TaskFailures'));
      expect(failures.map(({ Dimensions }) => Dimensions)).toEqual(
        functions.map(({ name }) => [
          { Name: 'service', Value: `holdfast-${STAGE}` },
          { Name: 'function', Value: name },
        ]),
      );
    },
  );

  it('each function, each table and each index has an alarm for throttling', () => {
    const throttles = alarms().filter(({ id }) => id.endsWith('ThrottlesAlarm'));
    const watched = throttles.flatMap(({ id }) => metrics(id));
    const ofFunctions = watched.filter(({ Namespace }) => Namespace === 'AWS/Lambda');
    expect(ofFunctions.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'Throttles'));
    expect(inOrder(ofFunctions.map(({ Dimensions }) => Dimensions[0]?.Value))).toEqual(
      inOrder(lambdas().map(({ logicalId }) => ({ Ref: logicalId }))),
    );
    const places = resourcesOfType('AWS::DynamoDB::Table').flatMap(([, { Properties }]) => {
      const indexes: { IndexName: string }[] = Properties.GlobalSecondaryIndexes ?? [];
      return [Properties.TableName, ...indexes.map(({ IndexName }) => `${Properties.TableName} ${IndexName}`)];
    });
    const ofTables = watched.filter(({ Namespace }) => Namespace === 'AWS/DynamoDB');
    for (const name of ['ReadThrottleEvents', 'WriteThrottleEvents'])
      expect(
        inOrder(
          ofTables
            .filter(({ MetricName }) => MetricName === name)
            .map(({ Dimensions }) => Dimensions.map(({ Value }) => Value).join(' ')),
        ),
      ).toEqual(inOrder(places));
  });

  it('only alarms that page exist by default; a parameter gives all or none', () => {
    const idsWith = (value: Record<string, string>) => alarms(withParameters(value)).map(({ id }) => id);
    expect(inOrder(idsWith({}))).toEqual([
      ...['ApiErrorsAlarm', 'FaultsAlarm', 'LeaseErrorsAlarm', 'LeaseLatencyAlarm', 'LeaseThrottlesAlarm'],
      ...['LeasesTableThrottlesAlarm', 'OldestWaiterAlarm', 'QueueErrorsAlarm'],
    ]);
    expect(idsWith({ alarms: 'all' })).toEqual(Object.keys(everyAlarm().Resources));
    expect(idsWith({ alarms: 'none' })).toEqual([]);
  });

  it('an alarm pages after two of three periods, and makes tickets at once', () => {
    const pages = alarms(withParameters({})).map(({ id }) => id);
    for (const { id, ...alarm } of alarms()) {
      expect(alarm, id).toMatchObject({
        ComparisonOperator: 'GreaterThanThreshold',
        TreatMissingData: 'notBreaching',
        ...(pages.includes(id)
          ? { EvaluationPeriods: 3, DatapointsToAlarm: 2 }
          : { EvaluationPeriods: 1, Threshold: 0 }),
      });
      expect(alarm.AlarmActions, id).toEqual([]);
    }
    const thresholds = alarms().filter(({ Threshold }) => Threshold !== 0);
    expect(Object.fromEntries(thresholds.map(({ id, Threshold }) => [id, Threshold]))).toEqual({
      ...{ ApiErrorsAlarm: 1, LeaseLatencyAlarm: 1000, OldestWaiterAlarm: '14400' },
    });
  });

  it('alarms notify the topic of pages, and tickets their own if it exists', () => {
    const [onCall, tickets] = ['on-call', 'tickets'].map((name) => `arn:aws:sns:eu-west-1:123456789012:${name}`);
    const actions = (topics: Record<string, string>) =>
      Object.fromEntries(
        alarms(withParameters({ alarms: 'all', ...topics })).map(({ id, AlarmActions }) => [id, AlarmActions]),
      );
    const alone = actions({ alarmTopicArn: String(onCall) });
    for (const [id, notified] of Object.entries(alone)) expect(notified, id).toEqual([onCall]);
    const both = actions({ alarmTopicArn: String(onCall), ticketTopicArn: String(tickets) });
    const pages = alarms(withParameters({})).map(({ id }) => id);
    for (const [id, notified] of Object.entries(both))
      expect(notified, id).toEqual([pages.includes(id) ? onCall : tickets]);
    expect(actions({ ticketTopicArn: String(tickets) })).toMatchObject({
      FaultsAlarm: [],
      FailedEventsAlarm: [tickets],
    });
  });

  it('alarms link their sections of the runbook, if a parameter gives its address', async () => {
    const runbook = await readFile('docs/operations.md', 'utf8');
    const anchors = [...runbook.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
    const url = 'https://wiki.example/holdfast/operations';
    for (const { id, AlarmDescription: text } of alarms(withParameters({ alarms: 'all', runbookUrl: url }))) {
      const [, base, anchor = ''] = /What to do: ([^#]+)#(.+)$/.exec(text) ?? [];
      expect(base, id).toBe(url);
      expect(anchors, id).toContain(anchor);
      expect(anchor.split('-'), id).toContain(id.replace(/Alarm$/, '').toLowerCase());
      expect(text.length, id).toBeLessThanOrEqual(1024);
    }
    expect(alarms()[0]?.AlarmDescription).toContain('What to do: docs/operations.md#faults in the source of Holdfast.');
  });

  it('alarms compute only with declared metrics, within the limits of CloudWatch', () => {
    const computed = alarms().filter(({ Metrics }) => Metrics);
    const others = [
      'ApiErrors',
      'LeaseLatency',
      'QueueErrors',
      'OperatorErrors',
      'OperatorThrottles',
      'WaitersTable',
      'ReportOverdue',
    ];
    expect(computed).toHaveLength(2 * CAPABILITIES.length + WITH_TABLE.length + others.length);
    for (const { id } of computed) {
      const ids = queries(id).map((query) => query.Id);
      expect(new Set(ids).size, id).toBe(ids.length);
      for (const one of ids) expect(one).toMatch(/^[a-z]\w*$/);
      expect(
        queries(id).filter(({ ReturnData }) => ReturnData !== false),
        id,
      ).toHaveLength(1);
      // An alarm on metric math takes at most ten metrics.
      expect(metrics(id).length, id).toBeLessThanOrEqual(10);
      const inputs = queries(id).flatMap((query) => (query.MetricStat ? [query.Id] : []));
      const { Expression: expression = '' } = queries(id).find(({ ReturnData }) => ReturnData !== false) ?? {};
      const groups = [...expression.matchAll(/METRICS\("(\w+)"\)/g)].map(([, group]) => String(group));
      // METRICS("errors") stands for the metrics whose ids contain `errors`.
      const outside: string[] = expression.replaceAll(/METRICS\("\w+"\)/g, '').match(/[A-Za-z]\w*/g) ?? [];
      const used = [
        ...groups.flatMap((group) => inputs.filter((input) => input.includes(group))),
        ...inputs.filter((input) => outside.includes(input)),
      ];
      expect(used.sort(), expression).toEqual(inputs.sort());
      for (const word of outside)
        expect([...inputs, 'SUM', 'MAX', 'FILL', 'IF', 'AND', 'PERIOD'], expression).toContain(word);
    }
  });
});

const inOrder = (values: unknown[]) => values.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
