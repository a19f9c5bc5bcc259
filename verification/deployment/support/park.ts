import { setTimeout as delay } from 'node:timers/promises';
import { PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { CreateStateMachineCommand, DescribeExecutionCommand, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { iam, serviceRole, sfn } from './aws.ts';

/**
 * Starts an execution whose only task waits for a lease or a permit.
 * @param payload of acquire, without the task token
 * @returns `output`, which resolves with the grant, or with null if the execution has failed
 */
export async function park(stage: string, payload: { key: string; holder: string; limit?: number }) {
  const name = `parks-${stage}`;
  const roleArn = await serviceRole(name, 'states.amazonaws.com');
  const PolicyDocument = JSON.stringify({
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: '*' }],
  });
  await iam.send(new PutRolePolicyCommand({ RoleName: name, PolicyName: 'invoke', PolicyDocument }));
  const definition = JSON.stringify({
    StartAt: 'Acquire',
    States: {
      Acquire: {
        Type: 'Task',
        Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
        Parameters: {
          FunctionName: `holdfast-${stage}-acquire`,
          Payload: { ...payload, 'taskToken.$': '$$.Task.Token', parkSeconds: 3600 },
        },
        End: true,
      },
    },
  });
  const { stateMachineArn } = await sfn.send(new CreateStateMachineCommand({ name, roleArn, definition }));
  const started = await sfn.send(new StartExecutionCommand({ stateMachineArn: String(stateMachineArn), input: '{}' }));
  const output = async () => {
    for (;;) {
      const execution = await sfn.send(new DescribeExecutionCommand({ executionArn: String(started.executionArn) }));
      if (execution.status !== 'RUNNING') return JSON.parse(execution.output ?? 'null');
      await delay(100);
    }
  };
  return { output };
}
