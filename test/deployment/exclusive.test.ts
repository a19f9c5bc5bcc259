import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { PARAMETERS } from '../../infrastructure/parameters.ts';
import { configured, ofType, STAGE, statements, template, withParameters } from '../support/stack/template.ts';

describe('the state machine exclusive', () => {
  const arn = (service: string, resource: string) => ({
    'Fn::Sub': `arn:\${AWS::Partition}:${service}:\${AWS::Region}:\${AWS::AccountId}:${resource}`,
  });
  const functionArn = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] });

  // The framework drops what is null, `"ResultPath": null` too: the file has none.
  it('the state machine exclusive is a Standard workflow of this file, over the functions of Holdfast, and writes no log', async () => {
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
      TracingConfiguration: { Enabled: false },
    });
    expect(template.Outputs.ExclusiveStateMachineArn?.Value).toEqual({ Ref: 'ExclusiveStateMachine' });
  });

  it('the state machine exclusive sends traces if the functions do, also in a namespace, and may then do so', () => {
    const traced = withParameters({ tracing: 'Active', namespaces: 'team-a' });
    const machines = ofType('AWS::StepFunctions::StateMachine', traced);
    expect(machines).toHaveLength(2);
    for (const [id, { Properties }] of machines) {
      expect(Properties.TracingConfiguration, id).toEqual({ Enabled: true });
      const [role] = Properties.RoleArn['Fn::GetAtt'];
      expect(statements(traced.Resources[role]), id).toContainEqual({
        Effect: 'Allow',
        Action: ['PutTraceSegments', 'PutTelemetryRecords', 'GetSamplingRules', 'GetSamplingTargets'].map(
          (action) => `xray:${action}`,
        ),
        Resource: '*',
      });
    }
  });

  it.each([
    ['no state machine, as long as no exclusiveTargets are given', template, undefined],
    ['the state machines that exclusiveTargets names', configured, ['nightly-*', 'etl-?']],
  ])('the state machine exclusive may invoke two functions, and run %s', (_, from, targets) => {
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
            {
              Effect: 'Allow',
              Action: ['states:StartExecution'],
              Resource: targets.map((name) => arn('states', `stateMachine:${name}`)),
            },
            {
              Effect: 'Allow',
              Action: ['states:DescribeExecution', 'states:StopExecution'],
              Resource: targets.map((name) => arn('states', `execution:${name}:*`)),
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

  it('the state machine exclusive runs the state machines of up to eight names, and refuses more, or a list with a hole', () => {
    const names = Array.from({ length: 8 }, (_, at) => `team-${at}-*`);
    const role = withParameters({ exclusiveTargets: names.join() }).Resources.ExclusiveStateMachineRole;
    const resources = statements(role).flatMap(({ Action, Resource }) =>
      Action.includes('states:StartExecution') ? Resource : [],
    );
    expect(resources).toEqual(names.map((name) => arn('states', `stateMachine:${name}`)));
    const pattern = new RegExp(PARAMETERS.exclusiveTargets?.pattern ?? '^$');
    for (const value of ['', '*', 'a', names.join()]) expect(value).toMatch(pattern);
    for (const value of [[...names, 'one-more'].join(), 'a,', ',a', 'a,,b', 'a, b', 'a:b'])
      expect(value).not.toMatch(pattern);
  });
});
