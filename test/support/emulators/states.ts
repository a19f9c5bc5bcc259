import { readFile } from 'node:fs/promises';
import {
  CreateStateMachineCommand,
  DescribeExecutionCommand,
  SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { expect, inject } from 'vitest';
import type { Trigger } from '../../../infrastructure/read-events.ts';
import { type BusEvent, Events } from '../../../local/events.ts';
import { Functions } from '../../../local/functions.ts';
import type { LambdaHandler } from '../../../local/lambda.ts';
import { startStepFunctions } from '../../../local/step-functions/start.ts';
import { checkedHandler } from '../stack/contract.ts';

const service = inject('service');

const statusChanges: Trigger = {
  kind: 'pattern',
  pattern: { source: ['aws.states'], 'detail-type': ['Step Functions Execution Status Change'] },
};

interface Settings {
  /** The handlers by name. Functions of serverless.yml keep its timeouts and triggers. */
  handlers?: Record<string, LambdaHandler>;
  /** The triggers of functions that serverless.yml does not have, by the name of the function. */
  triggers?: Record<string, Trigger[]>;
  timeoutSeconds?: number;
  /** How long a second of a definition takes. */
  secondMs?: number;
  /** How long a second of a timeout or a heartbeat takes. */
  limitSecondMs?: number;
  /** Whether to validate definitions, as `npm start` does. The validator takes a fifth of a second for each. */
  validates?: boolean;
}

const checked = (handlers: Record<string, LambdaHandler>) =>
  Object.fromEntries(Object.entries(handlers).map(([name, handler]) => [name, checkedHandler(name, handler)]));

/** The local Step Functions on a port of its own, with short seconds, and a client that speaks to it over the wire. */
export async function statesWorld(settings: Settings = {}) {
  const { handlers = {}, triggers = {}, timeoutSeconds = 60, secondMs = 10, limitSecondMs = secondMs } = settings;
  const statuses: Record<string, unknown>[] = [];
  const noteStatus: LambdaHandler = async (event) => void statuses.push((event as BusEvent).detail);
  const own = Object.keys({ ...handlers, noteStatus }).filter(
    (name) => !service.functions.some((one) => one.name === name),
  );
  const functions = new Functions(
    {
      functions: [
        ...service.functions,
        ...own.map((name) => ({
          name,
          deployedName: name,
          timeoutSeconds,
          triggers: triggers[name] ?? (name === 'noteStatus' ? [statusChanges] : []),
        })),
      ],
    },
    { noteStatus, ...checked(handlers) },
  );
  const events = new Events(functions, service, secondMs);
  const {
    endpoint,
    stop,
    service: loaded,
  } = await startStepFunctions(functions, events, {
    stateMachines: service.stateMachines,
    port: 0,
    ...{ secondMs, limitSecondMs },
    ...(!settings.validates && { complaints: () => '' }),
  });
  const states = await loaded();
  const sfn = new SFNClient({ endpoint });

  const describe = (executionArn: string) => sfn.send(new DescribeExecutionCommand({ executionArn }));
  return {
    sfn,
    endpoint,
    events,
    states,
    /** Details of the status changes that the bus delivered. */
    statuses,
    create: async (name: string, definition: object): Promise<string> => {
      const roleArn = 'arn:aws:iam::000000000000:role/test';
      const asked = new CreateStateMachineCommand({ name, roleArn, definition: JSON.stringify(definition) });
      return (await sfn.send(asked)).stateMachineArn ?? '';
    },
    start: async (stateMachineArn: string, input: object = {}, name?: string): Promise<string> => {
      const asked = { stateMachineArn, input: JSON.stringify(input), ...(name && { name }) };
      return (await sfn.send(new StartExecutionCommand(asked))).executionArn ?? '';
    },
    describe,
    abort: (executionArn: string) => sfn.send(new StopExecutionCommand({ executionArn, error: 'Stopped' })),
    /** The result of an execution, with its output parsed. */
    ended: async (executionArn: string) => {
      await states.execution(executionArn).ended;
      const { status, output, error, cause } = await describe(executionArn);
      return { status, output: output && JSON.parse(output), error, cause };
    },
    stop: async () => {
      events.stop();
      sfn.destroy();
      await stop();
    },
  };
}

export type StatesWorld = Awaited<ReturnType<typeof statesWorld>>;

/** A definition of a file, with its placeholders filled in. */
export async function definition(path: string, values: Record<string, string> = {}): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8');
  return JSON.parse(
    text.replaceAll(/\$\{(\w+)\}/g, (placeholder, name) => {
      expect(values, `a value of ${placeholder} in ${path}`).toHaveProperty(name);
      return values[name] ?? '';
    }),
  );
}

/** A state machine of one task. */
export const oneTask = (task: object) => ({ StartAt: 'Task', States: { Task: { Type: 'Task', End: true, ...task } } });
