import { randomUUID } from 'node:crypto';
import aslValidator from 'asl-validator';
import { ACCOUNT, REGION } from '../../infrastructure/logical-ids.ts';
import { apiError } from './errors.ts';
import { Execution, type StateMachine } from './execution.ts';
import { performTask, type Services } from './integrations.ts';
import { type Definition, isJsonata } from './interpreter.ts';
import { isJson } from './json.ts';
import { Tokens } from './tokens.ts';

export interface StepFunctionsOptions {
  invoke: Services['invoke'];
  /** Called at the start and at the end of every execution. */
  statusChanged?(execution: Execution): void;
  /** How long a second of a definition takes, in milliseconds: 1000 except in tests. */
  secondMs?: number;
  /** How long a second of a timeout or a heartbeat takes. */
  limitSecondMs?: number;
  /** Returns what is wrong with a definition, or an empty text. Tests of other things replace it, because the validator is slow. */
  complaints?: (definition: Definition) => string;
}

const NAME = /^[\w-]{1,80}$/;

const MAX_INPUT_BYTES = 262_144;

/** Standard workflows in the memory of this process, with the errors of the service's API. */
export class StepFunctions {
  readonly tokens = new Tokens();
  readonly machines = new Map<string, StateMachine>();
  readonly executions = new Map<string, Execution>();
  readonly #options: StepFunctionsOptions;

  constructor(options: StepFunctionsOptions) {
    this.#options = options;
  }

  /**
   * Creates a state machine. Idempotent, if the definition is the same.
   * @throws ApiError InvalidName, InvalidDefinition, StateMachineTypeNotSupported, StateMachineAlreadyExists
   */
  create(request: { name: string; definition: string; roleArn?: string; type?: string }): StateMachine {
    const { name, definition, roleArn = `arn:aws:iam::${ACCOUNT}:role/local`, type = 'STANDARD' } = request;
    if (!NAME.test(name)) throw apiError('InvalidName', `Invalid Name: '${name}'`);
    if (type !== 'STANDARD')
      throw apiError('StateMachineTypeNotSupported', 'the local stack runs Standard workflows only');
    const arn = `arn:aws:states:${REGION}:${ACCOUNT}:stateMachine:${name}`;
    const existing = this.machines.get(arn);
    if (existing?.text === definition) return existing;
    if (existing) throw apiError('StateMachineAlreadyExists', `State Machine Already Exists: '${arn}'`);
    const machine = {
      arn,
      name,
      roleArn,
      type,
      text: definition,
      definition: parsed(definition, this.#options.complaints ?? complaintsOfValidator),
      createdAt: new Date(),
    } as const;
    this.machines.set(arn, machine);
    return machine;
  }

  /** @throws ApiError StateMachineDoesNotExist */
  machine(arn: string): StateMachine {
    const machine = this.machines.get(arn);
    if (!machine) throw apiError('StateMachineDoesNotExist', `State Machine Does Not Exist: '${arn}'`);
    return machine;
  }

  /**
   * Starts an execution. Idempotent by name and input while the execution runs.
   * @throws ApiError StateMachineDoesNotExist, InvalidName, InvalidExecutionInput, ExecutionAlreadyExists
   */
  start({
    stateMachineArn,
    name = randomUUID(),
    input = '{}',
  }: {
    stateMachineArn: string;
    name?: string;
    input?: string;
  }): Execution {
    const machine = this.machine(stateMachineArn);
    if (!NAME.test(name)) throw apiError('InvalidName', `Invalid Name: '${name}'`);
    if (Buffer.byteLength(input) > MAX_INPUT_BYTES)
      throw apiError('ValidationException', `'input' must have length less than or equal to ${MAX_INPUT_BYTES}`);
    if (!isJson(input)) throw apiError('InvalidExecutionInput', 'Invalid State Machine Execution Input: not JSON');
    const arn = `arn:aws:states:${REGION}:${ACCOUNT}:execution:${machine.name}:${name}`;
    const existing = this.executions.get(arn);
    if (existing?.status === 'RUNNING' && existing.input === input) return existing;
    if (existing) throw apiError('ExecutionAlreadyExists', `Execution Already Exists: '${arn}'`);
    const { secondMs = 1000, limitSecondMs = secondMs, statusChanged = () => {}, invoke } = this.#options;
    const services: Services = {
      tokens: this.tokens,
      invoke,
      start: (request) => this.start(request),
      execution: (id) => this.execution(id),
    };
    const execution = new Execution({
      ...{ machine, arn, name, input, secondMs, limitSecondMs, statusChanged },
      perform: (running, task) => performTask(services, running, task),
    });
    this.executions.set(arn, execution);
    return execution;
  }

  /** @throws ApiError ExecutionDoesNotExist */
  execution(arn: string): Execution {
    const execution = this.executions.get(arn);
    if (!execution) throw apiError('ExecutionDoesNotExist', `Execution Does Not Exist: '${arn}'`);
    return execution;
  }

  /** Stops all executions, so that no timer is left. */
  stop(): void {
    for (const execution of this.executions.values()) execution.stop('Stopped', 'the local stack has ended');
  }
}

/** Definitions that were found valid, because each validation takes a tenth of a second. */
const valid = new Set<string>();

function complaintsOfValidator(definition: Definition): string {
  const { isValid, errorsText } = aslValidator(definition as never);
  return isValid ? '' : errorsText('\n');
}

/** Parses a definition. @throws ApiError InvalidDefinition with the complaints of the validator */
function parsed(text: string, complaintsOf: (definition: Definition) => string): Definition {
  if (!isJson(text)) throw apiError('InvalidDefinition', 'Invalid State Machine Definition: not JSON');
  const definition = JSON.parse(text) as Definition;
  JSON.parse(text, (_, value) => {
    if (value && isJsonata(value) && (!['Pass', 'Wait'].includes(value.Type) || value.Assign !== undefined))
      throw apiError(
        'InvalidDefinition',
        'the local stack interprets JSONata in Pass and Wait states, and no variables',
      );
    return value;
  });
  if (valid.has(text)) return definition;
  const complaints = complaintsOf(JSON.parse(text)); // a copy, because the validator modifies its argument
  if (complaints) throw apiError('InvalidDefinition', `Invalid State Machine Definition: ${complaints}`);
  valid.add(text);
  return definition;
}
