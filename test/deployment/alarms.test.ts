import { describe, expect, it } from 'vitest';
import {
  CAPABILITIES,
  type Capability,
  functionsOf,
  lambdas,
  ofType,
  STAGE,
  TABLES,
  withParameters,
} from '../support/stack/template.ts';

/** Those with a table of their own. */
const WITH_TABLE = ['leases', 'commits', 'nameservice'] as const;

/** The functions of leases that have an alarm of their own, because an alarm takes ten metrics. */
const QUEUE = ['cancelWaiter', 'withdraw', 'repairQueues', 'executionEnded'];

describe('alarms', () => {
  interface Query {
    Id: string;
    Expression?: string;
    ReturnData?: boolean;
    MetricStat?: { Metric: { Namespace: string; MetricName: string; Dimensions: { Name: string; Value: unknown }[] } };
  }
  const alarms = () => ofType('AWS::CloudWatch::Alarm').map(([id, { Properties }]) => ({ id, ...Properties }));
  const queries = (id: string): Query[] => alarms().find((alarm) => alarm.id === id)?.Metrics ?? [];
  const metrics = (id: string) => queries(id).flatMap(({ MetricStat }) => MetricStat?.Metric ?? []);
  const refs = (capability: Capability, watched = functionsOf(capability)) => {
    const names = watched.map(({ name }) => name);
    return lambdas().flatMap(({ name, logicalId }) => (names.includes(name) ? [{ Ref: logicalId }] : []));
  };

  it.each([
    ['leases', 'LeaseErrorsAlarm', (name: string) => !QUEUE.includes(name)],
    ['leases', 'QueueErrorsAlarm', (name: string) => QUEUE.includes(name)],
    ['commits', 'CommitErrorsAlarm', () => true],
    ['nameservice', 'NameserviceErrorsAlarm', () => true],
    ['expiry', 'ExpiryErrorsAlarm', () => true],
    ['contract', 'ContractErrorsAlarm', () => true],
  ] as const)(
    'exist for crashes of every function of %s, less the errors that tasks are told by: %s',
    (capability, id, isWatched) => {
      const functions = functionsOf(capability).filter(({ name }) => isWatched(name));
      const errors = metrics(id).filter(({ Namespace }) => Namespace === 'AWS/Lambda');
      expect(errors.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'Errors'));
      expect(errors.map(({ Dimensions }) => Dimensions)).toEqual(
        refs(capability, functions).map((Value) => [{ Name: 'FunctionName', Value }]),
      );
      const told = metrics(id).filter(({ Namespace }) => Namespace === 'Holdfast');
      expect(told.map(({ MetricName }) => MetricName)).toEqual(functions.map(() => 'TaskFailures'));
      expect(told.map(({ Dimensions }) => Dimensions)).toEqual(
        functions.map(({ name }) => [
          { Name: 'service', Value: `holdfast-${STAGE}` },
          { Name: 'function', Value: name },
        ]),
      );
    },
  );

  it('exist for faults, for throttled functions and for throttled tables', () => {
    expect(alarms().find(({ id }) => id === 'FaultsAlarm')).toMatchObject({
      Namespace: 'Holdfast',
      MetricName: 'Faults',
      Dimensions: [{ Name: 'service', Value: `holdfast-${STAGE}` }],
    });
    const throttledOf = (id: string) => metrics(id).map(({ MetricName, Dimensions }) => [MetricName, Dimensions]);
    const readAndWrite = (dimensions: object) => [
      ['ReadThrottleEvents', dimensions],
      ['WriteThrottleEvents', dimensions],
    ];
    const byFunction = {
      leases: 'LeaseThrottlesAlarm',
      commits: 'CommitThrottlesAlarm',
      nameservice: 'NameserviceThrottlesAlarm',
      expiry: 'ExpiryThrottlesAlarm',
      contract: 'ContractThrottlesAlarm',
    };
    const byTable = {
      leases: 'LeasesTableThrottlesAlarm',
      commits: 'CommitsTableThrottlesAlarm',
      nameservice: 'NameserviceTableThrottlesAlarm',
    };
    for (const capability of CAPABILITIES) {
      const throttles = metrics(byFunction[capability]);
      expect(throttles.map(({ MetricName }) => MetricName)).toEqual(functionsOf(capability).map(() => 'Throttles'));
      expect(throttles.map(({ Dimensions }) => Dimensions[0]?.Value)).toEqual(refs(capability));
    }
    for (const capability of WITH_TABLE) {
      const table = [{ Name: 'TableName', Value: TABLES[capability] }];
      const Value = capability === 'nameservice' ? 'gsi1-kind' : 'by-execution';
      const index = [...table, { Name: 'GlobalSecondaryIndexName', Value }];
      expect(throttledOf(byTable[capability])).toEqual(
        (capability === 'commits' ? [table] : [table, index]).flatMap(readAndWrite),
      );
    }
    const waiters = [{ Name: 'TableName', Value: TABLES.waiters }];
    const index = { Name: 'GlobalSecondaryIndexName', Value: 'by-execution' };
    expect(throttledOf('WaitersTableThrottlesAlarm')).toEqual([waiters, [...waiters, index]].flatMap(readAndWrite));
  });

  it('fire at the first event, stay quiet without data, and notify only whom they are told to', async () => {
    for (const { id, ...alarm } of alarms()) {
      expect(alarm, id).toMatchObject({
        Threshold: 0,
        ComparisonOperator: 'GreaterThanThreshold',
        TreatMissingData: 'notBreaching',
        EvaluationPeriods: 1,
      });
      expect(alarm.AlarmActions, id).toEqual([]);
    }
    const topic = 'arn:aws:sns:eu-west-1:123456789012:on-call';
    for (const [id, { Properties }] of ofType('AWS::CloudWatch::Alarm', withParameters({ alarmTopicArn: topic })))
      expect(Properties.AlarmActions, id).toEqual([topic]);
  });

  it('compute only with metrics that they declare, within the limits of CloudWatch', () => {
    const computed = alarms().filter(({ Metrics }) => Metrics);
    // Also of the queue's functions and table, and of the report.
    expect(computed).toHaveLength(2 * CAPABILITIES.length + WITH_TABLE.length + 3);
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
      for (const word of outside) expect([...inputs, 'SUM', 'FILL', 'IF', 'AND', 'PERIOD'], expression).toContain(word);
    }
  });
});
