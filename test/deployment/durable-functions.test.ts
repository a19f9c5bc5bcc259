import { describe, expect, it } from 'vitest';
import type { Template } from '../support/stack/packaging.ts';
import { roles, template, withParameters } from '../support/stack/template.ts';

const serving = withParameters({ durableFunctions: 'billing-*' });
const ARNS = `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:billing-*:*`;

/** The functions that may use an operation of durable functions, and on which resource. */
const mayUse = (operation: string, of: Template) =>
  roles(of).flatMap(({ name, statements }) =>
    statements
      .filter(({ Action }) => Action.includes(`lambda:${operation}`))
      .map(({ Resource }) => [name, Object(Resource)['Fn::Sub']]),
  );

describe('durableFunctions', () => {
  it('a stack without durableFunctions has neither a rule for the ends of durable functions nor a permission on durable functions', () => {
    expect(Object.keys(template.Resources).filter((id) => id.startsWith('Durable'))).toEqual([]);
    expect(JSON.stringify(template)).not.toMatch(/DurableExecution(Callback|EndedRule)|GetDurableExecution/);
  });

  it('a stack with durableFunctions lets only the functions that notify waiters complete callbacks, and only those of the named functions', () => {
    const notifying = [
      'acquire',
      'release',
      'breakLease',
      'cancelWaiter',
      'withdraw',
      'repairQueues',
      'executionEnded',
    ];
    const expected = notifying.map((name) => [name, ARNS]);
    expect(mayUse('SendDurableExecutionCallbackSuccess', serving)).toEqual(expected);
    expect(mayUse('SendDurableExecutionCallbackFailure', serving)).toEqual(expected);
    expect(mayUse('GetDurableExecution', serving)).toEqual([
      ['acquire', ARNS], // a refused caller asks about the execution that holds
      ['repairQueues', ARNS],
      ['executionEnded', ARNS],
      ['report', ARNS], // of bound leases
      ['clean', ARNS],
    ]);
  });

  it('a stack with durableFunctions sends the four ends of executions of the named functions to executionEnded at once, and again by its queue', () => {
    const { EventPattern, Targets } = serving.Resources.DurableExecutionEndedRule?.Properties ?? {};
    expect(EventPattern).toEqual({
      source: ['aws.lambda'],
      'detail-type': ['Durable Execution Status Change'],
      detail: {
        status: ['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'STOPPED'],
        durableExecutionArn: [{ wildcard: { 'Fn::Sub': ARNS } }],
      },
    });
    const InputPathsMap = {
      execution: '$.detail.durableExecutionArn',
      status: '$.detail.status',
      stopDate: '$.detail.endTimestamp',
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
        Arn: { 'Fn::GetAtt': ['ExecutionEndedQueue', 'Arn'] },
        InputTransformer: { InputPathsMap, InputTemplate: `{"execution": <execution>, "again": true, ${event}}` },
      },
    ]);
    const rules = ['ExecutionEndedRule', 'DurableExecutionEndedRule'].map((id) => ({ 'Fn::GetAtt': [id, 'Arn'] }));
    expect(serving.Resources.ExecutionEndedQueuePolicy?.Properties.PolicyDocument.Statement[0].Condition).toEqual({
      ArnEquals: { 'aws:SourceArn': rules },
    });
  });
});
