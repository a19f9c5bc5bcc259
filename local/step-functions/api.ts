import { apiError } from './errors.ts';
import { type Execution, redriveStatus, type StateMachine } from './execution.ts';
import { isJson, type Json } from './json.ts';
import type { StepFunctions } from './service.ts';

type Fields = Record<string, Json>;

/** Leaves out undefined fields, as the service does. */
type Answer = Record<string, unknown>;

const MAX_OUTPUT_BYTES = 262_144;

/** The calls of the Step Functions API that the local stack answers, by name. */
export const operations: Record<string, (service: StepFunctions, request: Fields) => Answer> = {
  CreateStateMachine: (service, request) => {
    const { arn, createdAt } = service.create({
      name: text(request, 'name'),
      definition: text(request, 'definition'),
      ...optional(request, 'roleArn'),
      ...optional(request, 'type'),
    });
    return { stateMachineArn: arn, creationDate: seconds(createdAt) };
  },
  ListStateMachines: (service) => ({ stateMachines: [...service.machines.values()].map(listedMachine) }),
  DescribeStateMachine: (service, request) => {
    const machine = service.machine(text(request, 'stateMachineArn'));
    return { ...listedMachine(machine), status: 'ACTIVE', definition: machine.text, roleArn: machine.roleArn };
  },
  StartExecution: (service, request) => {
    const { arn, startedAt } = service.start({
      stateMachineArn: text(request, 'stateMachineArn'),
      ...optional(request, 'name'),
      ...optional(request, 'input'),
    });
    return { executionArn: arn, startDate: seconds(startedAt) };
  },
  DescribeExecution: (service, request) => {
    const execution = service.execution(text(request, 'executionArn'));
    const { input, output, error, cause } = execution;
    return {
      ...listedExecution(execution),
      ...redriveStatus(execution),
      ...{ input, inputDetails: { included: true }, output, error, cause },
      ...(output !== undefined && { outputDetails: { included: true } }),
    };
  },
  ListExecutions: (service, request) => {
    const { stateMachineArn, statusFilter } = request;
    if (stateMachineArn) service.machine(text(request, 'stateMachineArn'));
    const listed = [...service.executions.values()].filter(
      ({ machine, status }) =>
        (!stateMachineArn || machine.arn === stateMachineArn) && (!statusFilter || status === statusFilter),
    );
    return { executions: listed.reverse().map(listedExecution) };
  },
  StopExecution: (service, request) => {
    const execution = service.execution(text(request, 'executionArn'));
    execution.stop(optional(request, 'error').error, optional(request, 'cause').cause);
    return { stopDate: seconds(execution.stoppedAt as Date) };
  },
  RedriveExecution: (service, request) => {
    const execution = service.execution(text(request, 'executionArn'));
    return { redriveDate: seconds(execution.redrive(optional(request, 'clientToken').clientToken)) };
  },
  GetExecutionHistory: (service, request) => ({
    events: service
      .execution(text(request, 'executionArn'))
      .history.map(({ at, type, state, redriveCount }, index) => ({
        ...{ id: index + 1, previousEventId: index, timestamp: seconds(at), type },
        ...(state !== undefined && { stateEnteredEventDetails: { name: state } }),
        ...(redriveCount !== undefined && { executionRedrivenEventDetails: { redriveCount } }),
      })),
  }),
  SendTaskSuccess: (service, request) => {
    const [token, output] = [text(request, 'taskToken'), text(request, 'output')];
    if (Buffer.byteLength(output) > MAX_OUTPUT_BYTES)
      throw apiError('ValidationException', `'output' must have length less than or equal to ${MAX_OUTPUT_BYTES}`);
    if (!isJson(output)) throw apiError('InvalidOutput', 'Invalid Output: not JSON');
    service.tokens.take(token).succeed(JSON.parse(output));
    return {};
  },
  SendTaskFailure: (service, request) => {
    const { error } = optional(request, 'error');
    const { cause } = optional(request, 'cause');
    service.tokens.take(text(request, 'taskToken')).fail(error, cause);
    return {};
  },
  SendTaskHeartbeat: (service, request) => {
    service.tokens.find(text(request, 'taskToken')).beat();
    return {};
  },
};

const listedMachine = ({ arn, name, type, createdAt }: StateMachine): Answer => ({
  ...{ stateMachineArn: arn, name, type, creationDate: seconds(createdAt) },
});

function listedExecution({ arn, name, machine, status, startedAt, stoppedAt, redrives }: Execution): Answer {
  const redrivenAt = redrives.at(-1)?.at;
  return {
    ...{ executionArn: arn, stateMachineArn: machine.arn, name, status, startDate: seconds(startedAt) },
    ...(stoppedAt && { stopDate: seconds(stoppedAt) }),
    ...{ redriveCount: redrives.length, ...(redrivenAt && { redriveDate: seconds(redrivenAt) }) },
  };
}

/** A timestamp of the protocol. */
const seconds = (date: Date): number => date.getTime() / 1000;

function text(request: Fields, name: string): string {
  const value = optional(request, name)[name];
  if (value === undefined || (value === '' && name === 'taskToken'))
    throw apiError('ValidationException', `Value at '${name}' failed to satisfy constraint: Member must not be null`);
  return value;
}

function optional<Name extends string>(request: Fields, name: Name): { [field in Name]?: string } {
  const value = request[name];
  if (value === undefined || value === null) return {};
  if (typeof value !== 'string') throw apiError('SerializationException', `'${name}' must be a string`);
  return { [name]: value } as { [field in Name]?: string };
}
