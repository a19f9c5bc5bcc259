import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { configured, STAGE, statements, template } from '../support/template.ts';

describe('the state machine exclusive', () => {
  const arn = (service: string, resource: string) => ({
    'Fn::Sub': `arn:\${AWS::Partition}:${service}:\${AWS::Region}:\${AWS::AccountId}:${resource}`,
  });
  const functionArn = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] });

  // The framework drops what is null, `"ResultPath": null` too: the file has none.
  it('is a Standard workflow of this file, over our functions, and logs nothing', async () => {
    expect(template.Resources.ExclusiveStateMachine?.Properties).toEqual({
      StateMachineName: `holdfast-${STAGE}-exclusive`,
      StateMachineType: 'STANDARD',
      RoleArn: functionArn('ExclusiveStateMachineRole'),
      Definition: JSON.parse(await readFile('functions/leases/exclusive.asl.json', 'utf8')),
      DefinitionSubstitutions: {
        Partition: { Ref: 'AWS::Partition' },
        AcquireFunctionArn: functionArn('AcquireLambdaFunction'),
        ReleaseFunctionArn: functionArn('ReleaseLambdaFunction'),
      },
      LoggingConfiguration: { Level: 'OFF', IncludeExecutionData: false },
    });
    expect(template.Outputs.ExclusiveStateMachineArn?.Value).toEqual({ Ref: 'ExclusiveStateMachine' });
  });

  it.each([
    ['no state machine, as long as no exclusiveTargets are given', template, undefined],
    ['the state machines that exclusiveTargets names', configured, 'nightly-*'],
  ])('may invoke two functions, and run %s', (_, from, targets) => {
    const role = from.Resources.ExclusiveStateMachineRole;
    expect(role?.Properties.AssumeRolePolicyDocument.Statement).toEqual([
      {
        Effect: 'Allow',
        Principal: { Service: ['states.amazonaws.com'] },
        Action: ['sts:AssumeRole'],
        Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
      },
    ]);
    expect(statements(role)).toEqual([
      {
        Effect: 'Allow',
        Action: ['lambda:InvokeFunction'],
        Resource: [functionArn('AcquireLambdaFunction'), functionArn('ReleaseLambdaFunction')],
      },
      ...(targets
        ? [
            { Effect: 'Allow', Action: ['states:StartExecution'], Resource: arn('states', `stateMachine:${targets}`) },
            {
              Effect: 'Allow',
              Action: ['states:DescribeExecution', 'states:StopExecution'],
              Resource: arn('states', `execution:${targets}:*`),
            },
          ]
        : []),
      {
        Effect: 'Allow',
        Action: ['events:PutTargets', 'events:PutRule', 'events:DescribeRule'],
        Resource: arn('events', 'rule/StepFunctionsGetEventsForStepFunctionsExecutionRule'),
      },
    ]);
  });
});
