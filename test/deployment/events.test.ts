import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { EVENT_SOURCE, EVENT_TYPE } from '../../shared/expiry/announcement.ts';
import type { Template } from '../support/stack/packaging.ts';
import {
  configured,
  functions,
  functionsOf,
  lambdas,
  ofType,
  roles,
  STAGE,
  template,
} from '../support/stack/template.ts';

describe('what EventBridge starts', () => {
  const ref = (name: string) => ({ 'Fn::GetAtt': [lambdas().find((one) => one.name === name)?.logicalId, 'Arn'] });
  /** The events that the queue needs have tests of their own below. */
  const rules = (from?: Template) =>
    ofType('AWS::Events::Rule', from)
      .map(([, { Properties }]) => Properties)
      .filter(({ Targets: [{ Arn }] }) => ['report', 'clean'].some((name) => isDeepStrictEqual(Arn, ref(name))));

  it('EventBridge starts the report every fifteen minutes, or as the deployment says', async () => {
    const scheduled = rules().filter(({ ScheduleExpression }) => ScheduleExpression);
    expect(scheduled).toMatchObject([
      { ScheduleExpression: 'rate(15 minutes)', State: 'ENABLED', Targets: [{ Arn: ref('report') }] },
    ]);
    const otherwise = configured;
    expect(rules(otherwise).map(({ ScheduleExpression, State }) => [ScheduleExpression, State])).toEqual([
      ['rate(1 hour)', 'ENABLED'],
      [undefined, 'ENABLED'],
    ]);
  });

  it('EventBridge starts the clean-up by the event of a report of this deployment, which is off by default', () => {
    expect(rules().filter(({ EventPattern }) => EventPattern)).toMatchObject([
      {
        EventPattern: {
          source: [EVENT_SOURCE],
          'detail-type': [EVENT_TYPE],
          detail: { service: [`holdfast-${STAGE}`] },
        },
        State: 'DISABLED',
        Targets: [{ Arn: ref('clean') }],
      },
    ]);
    const variables = lambdas().find(({ name }) => name === 'report')?.Environment.Variables;
    expect(variables.SERVICE_NAME).toBe(`holdfast-${STAGE}`);
  });

  it('EventBridge may start the clean-up, and what fails twice is kept, with an alarm', () => {
    const started = ['report', 'clean'];
    const permissions = ofType('AWS::Lambda::Permission').map(([, { Properties }]) => Properties);
    const mayStart = permissions.filter(({ Principal }) => Principal === 'events.amazonaws.com');
    const startable = mayStart.map(({ FunctionName }) => FunctionName);
    const mayBeStarted = started.map((name) => lambdas().find((one) => one.name === name)?.logicalId);
    const ids = startable.map(({ Ref: id, 'Fn::GetAtt': [named] = [id] }) => named);
    expect(ids).toEqual(expect.arrayContaining(mayBeStarted));
    const queue = { 'Fn::GetAtt': ['FailedEventsQueue', 'Arn'] };
    const invoked = ofType('AWS::Lambda::EventInvokeConfig').map(([, { Properties }]) => Properties);
    // A schedule and a queue bring the others the same work again.
    const notRetried = invoked.filter(({ MaximumRetryAttempts }) => MaximumRetryAttempts === 0);
    expect(notRetried.map(({ FunctionName }) => FunctionName)).toEqual([
      { Ref: 'RepairQueuesLambdaFunction' },
      { Ref: 'ExecutionEndedLambdaFunction' },
    ]);
    expect(invoked.filter(({ MaximumRetryAttempts }) => MaximumRetryAttempts !== 0)).toEqual(
      started.map((name) => ({
        FunctionName: { Ref: lambdas().find((one) => one.name === name)?.logicalId },
        Qualifier: '$LATEST',
        MaximumRetryAttempts: 1,
        MaximumEventAgeInSeconds: 600,
        DestinationConfig: { OnFailure: { Destination: queue } },
      })),
    );
    for (const { name, statements } of roles()) {
      const repairs = { 'Fn::GetAtt': ['RepairQueue', 'Arn'] };
      const sends = statements.filter(
        ({ Action, Resource }) => Action.includes('sqs:SendMessage') && !isDeepStrictEqual(Resource, repairs),
      );
      expect(
        sends.map(({ Resource }) => Resource),
        name,
      ).toEqual(started.includes(name) ? [queue] : []);
    }
    expect(template.Resources.FailedEventsQueue).toMatchObject({
      Type: 'AWS::SQS::Queue',
      Properties: { SqsManagedSseEnabled: true, MessageRetentionPeriod: 14 * 86_400 },
    });
    expect(configured.Resources.FailedEventsAlarm?.Properties).toMatchObject({
      Namespace: 'AWS/SQS',
      MetricName: 'ApproximateNumberOfMessagesVisible',
      Dimensions: [{ Name: 'QueueName', Value: { 'Fn::GetAtt': ['FailedEventsQueue', 'QueueName'] } }],
    });
  });

  it('the alarms HoldersEnded and HoldersUnknown watch bound leases whose execution has ended or is unknown', () => {
    const service = { Name: 'service', Value: `holdfast-${STAGE}` };
    const watched = { HoldersEndedAlarm: 'holderEnded', HoldersUnknownAlarm: 'holderUnknown' };
    for (const [id, kind] of Object.entries(watched))
      expect(configured.Resources[id]?.Properties).toMatchObject({
        MetricName: 'ExpiredRecords',
        Dimensions: [service, { Name: 'kind', Value: kind }],
      });
  });

  it('EventBridge is watched for abandoned leases, and for a report that does not come', () => {
    const service = { Name: 'service', Value: `holdfast-${STAGE}` };
    expect(configured.Resources.AbandonedLeasesAlarm?.Properties).toMatchObject({
      MetricName: 'ExpiredRecords',
      Dimensions: [service, { Name: 'kind', Value: 'abandonedLease' }],
    });
    expect(configured.Resources.AbandonedPermitsAlarm?.Properties).toMatchObject({
      MetricName: 'ExpiredRecords',
      Dimensions: [service, { Name: 'kind', Value: 'abandonedPermit' }],
    });
    // On a new stack the schedule has not run for half of the hour yet, so that the alarm stays quiet.
    expect(configured.Resources.ReportOverdueAlarm?.Properties).toMatchObject({
      Metrics: [
        { Expression: 'IF(minutes * 120 >= PERIOD(minutes) AND SUM([FILL(completed, 0), minutes * 0]) < 1, 1, 0)' },
        {
          MetricStat: { Period: '3600', Stat: 'Sum', Metric: { MetricName: 'ReportCompleted', Dimensions: [service] } },
        },
        {
          MetricStat: {
            Period: '3600',
            Stat: 'Sum',
            Metric: {
              MetricName: 'Invocations',
              Dimensions: [{ Name: 'FunctionName', Value: { Ref: 'RepairQueuesLambdaFunction' } }],
            },
          },
        },
      ],
      EvaluationPeriods: 1,
    });
  });
});

describe('the end of an execution', () => {
  const resource = (id: string) => (id.endsWith('Alarm') ? configured : template).Resources[id]?.Properties;
  const queue = { 'Fn::GetAtt': ['ExecutionEndedQueue', 'Arn'] };

  it('the end of an execution is sent to the function at once, and by the SQS queue once more', () => {
    const { EventPattern, State, Targets } = resource('ExecutionEndedRule');
    expect(State).toBe('ENABLED');
    expect(EventPattern).toEqual({
      source: ['aws.states'],
      'detail-type': ['Step Functions Execution Status Change'],
      detail: { status: ['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED'] },
    });
    const InputPathsMap = {
      execution: '$.detail.executionArn',
      status: '$.detail.status',
      stopDate: '$.detail.stopDate',
    };
    const event = '"status": <status>, "stopDate": <stopDate>';
    expect(Targets).toEqual([
      {
        Id: 'at-once',
        Arn: { 'Fn::GetAtt': ['ExecutionEndedLambdaFunction', 'Arn'] },
        InputTransformer: { InputPathsMap, InputTemplate: `{"execution": <execution>, ${event}}` },
      },
      {
        Id: 'again',
        Arn: queue,
        InputTransformer: { InputPathsMap, InputTemplate: `{"execution": <execution>, "again": true, ${event}}` },
      },
    ]);
    expect(resource('ExecutionEndedRulePermission')).toMatchObject({
      FunctionName: { Ref: 'ExecutionEndedLambdaFunction' },
      Principal: 'events.amazonaws.com',
      SourceArn: { 'Fn::GetAtt': ['ExecutionEndedRule', 'Arn'] },
    });
    expect(resource('ExecutionEndedQueuePolicy').PolicyDocument.Statement).toEqual([
      {
        Effect: 'Allow',
        Principal: { Service: 'events.amazonaws.com' },
        Action: 'sqs:SendMessage',
        Resource: queue,
        Condition: { ArnEquals: { 'aws:SourceArn': [{ 'Fn::GetAtt': ['ExecutionEndedRule', 'Arn'] }] } },
      },
    ]);
    const mappings = ofType('AWS::Lambda::EventSourceMapping').map(([, { Properties }]) => Properties);
    const mapping = mappings.find(({ EventSourceArn }) => isDeepStrictEqual(EventSourceArn, queue));
    expect(mapping).toMatchObject({
      EventSourceArn: queue,
      FunctionName: { 'Fn::GetAtt': ['ExecutionEndedLambdaFunction', 'Arn'] },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
  });

  it('the end of an execution comes again later than any call that can grant a lease may take, and ends with an alarm', () => {
    const granting = functionsOf('leases').map(({ timeoutSeconds }) => timeoutSeconds);
    const { DelaySeconds, VisibilityTimeout, MessageRetentionPeriod, RedrivePolicy } = resource('ExecutionEndedQueue');
    expect(DelaySeconds).toBeGreaterThanOrEqual(Math.max(...granting) + 30);
    expect(VisibilityTimeout).toBe(6 * Number(functions.find(({ name }) => name === 'executionEnded')?.timeoutSeconds));
    expect(MessageRetentionPeriod).toBe(14 * 86_400);
    expect(RedrivePolicy).toEqual({
      deadLetterTargetArn: { 'Fn::GetAtt': ['ExecutionEndedDeadLetters', 'Arn'] },
      maxReceiveCount: 5,
    });
    expect(resource('ExecutionEndedDeadLettersAlarm')).toMatchObject({
      Namespace: 'AWS/SQS',
      MetricName: 'ApproximateNumberOfMessagesVisible',
      Dimensions: [{ Name: 'QueueName', Value: { 'Fn::GetAtt': ['ExecutionEndedDeadLetters', 'QueueName'] } }],
    });
  });

  it('the repair of lines starts each minute, by a call that ends before the next', () => {
    const rules = ofType('AWS::Events::Rule').map(([, { Properties }]) => Properties);
    const [repair, ...others] = rules.filter(({ ScheduleExpression }) => ScheduleExpression === 'rate(1 minute)');
    expect(others).toEqual([]);
    expect(repair).toMatchObject({
      State: 'ENABLED',
      Targets: [{ Arn: { 'Fn::GetAtt': ['RepairQueuesLambdaFunction', 'Arn'] }, Input: '{}' }],
    });
    expect(functions.find(({ name }) => name === 'repairQueues')?.timeoutSeconds).toBeLessThan(60);
  });

  it('a run of the schedule that does not see every key raises an alarm', () => {
    expect(resource('RepairsCutShortAlarm')).toMatchObject({
      Namespace: 'Holdfast',
      MetricName: 'RepairsCutShort',
      Dimensions: [{ Name: 'service', Value: `holdfast-${STAGE}` }],
      Statistic: 'Sum',
    });
  });

  it('a run of the schedule that Lambda throttled is dropped before the next run but one, so that runs do not pile up', () => {
    const invoked = ofType('AWS::Lambda::EventInvokeConfig').map(([, { Properties }]) => Properties);
    expect(invoked.find(({ FunctionName }) => FunctionName.Ref === 'RepairQueuesLambdaFunction')).toMatchObject({
      MaximumEventAgeInSeconds: 60,
      MaximumRetryAttempts: 0,
    });
  });

  it('the repair of one key is started by a message, whose loss is repaired soon', () => {
    const mappings = ofType('AWS::Lambda::EventSourceMapping').map(([, { Properties }]) => Properties);
    expect(mappings.map(({ FunctionName, EventSourceArn }) => ({ FunctionName, EventSourceArn }))).toContainEqual({
      FunctionName: { 'Fn::GetAtt': ['RepairQueuesLambdaFunction', 'Arn'] },
      EventSourceArn: { 'Fn::GetAtt': ['RepairQueue', 'Arn'] },
    });
    // Longer than the longest delay, which is part of it, and the time for another try.
    expect(resource('RepairQueue')).toMatchObject({ SqsManagedSseEnabled: true, MessageRetentionPeriod: 1800 });
    const senders = roles().filter(({ statements }) =>
      statements.some(({ Resource }) => isDeepStrictEqual(Resource, { 'Fn::GetAtt': ['RepairQueue', 'Arn'] })),
    );
    // Those that hand leases on.
    const handingOn = ['acquire', 'release', 'breakLease', 'withdraw', 'repairQueues', 'executionEnded'];
    expect(senders.map(({ name }) => name).sort()).toEqual(expect.arrayContaining(handingOn.sort()));
  });
});
