import { randomUUID } from 'node:crypto';
import { ACCOUNT, REGION } from '../../infrastructure/logical-ids.ts';
import { LambdaError, notFound } from './errors.ts';
import { DurableExecution, type ExecutionOptions } from './execution.ts';

export interface DurableOptions {
  /** Invokes the handler of a durable function. */
  invoke(functionName: string, event: object): Promise<unknown>;
  /** The names of the durable functions. */
  functions: readonly string[];
  statusChanged?: ExecutionOptions['statusChanged'];
  /** How long a second of a handler's waits takes, in milliseconds: 1000 except in tests. */
  secondMs?: number;
}

const NAME = /^[\w-]{1,64}$/;

/** Durable functions in the memory of this process, with the errors of Lambda's API. */
export class DurableFunctions {
  readonly executions = new Map<string, DurableExecution>();
  readonly #options: DurableOptions;

  constructor(options: DurableOptions) {
    this.#options = options;
  }

  /**
   * Starts an execution. Idempotent by name, if the input is the same.
   * @param functionName the name of the function, with or without a version
   * @throws LambdaError ResourceNotFoundException, InvalidParameterValueException, DurableExecutionAlreadyStartedException
   */
  start(functionName: string, input: string, name: string = randomUUID()): DurableExecution {
    const [bare = '', version = '$LATEST'] = functionName.split(':');
    const { functions, invoke, statusChanged = () => {}, secondMs = 1000 } = this.#options;
    if (!functions.includes(bare))
      throw notFound(
        `Function not found: ${bare}. The local stack has: ${functions.join(', ') || 'none, see --durable'}`,
      );
    if (!NAME.test(name)) throw new LambdaError('InvalidParameterValueException', `Invalid execution name: '${name}'`);
    const functionArn = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${bare}:${version}`;
    const existing = [...this.executions.values()].find((one) => one.name === name && one.functionArn === functionArn);
    if (existing?.input === input) return existing;
    if (existing) throw new LambdaError('DurableExecutionAlreadyStartedException', `${name} has another input`, 409);
    const arn = `${functionArn}/durable-execution/${name}/${randomUUID()}`;
    const execution = new DurableExecution({
      ...{ arn, name, functionArn, input, secondMs, statusChanged },
      invoke: (event) => invoke(bare, event),
    });
    this.executions.set(arn, execution);
    return execution;
  }

  /** @throws LambdaError ResourceNotFoundException */
  execution(arn: string): DurableExecution {
    const execution = this.executions.get(arn);
    if (!execution) throw notFound(`Durable execution not found: ${arn}`);
    return execution;
  }

  /** Finds the execution of a callback. @throws LambdaError ResourceNotFoundException */
  ofCallback(callbackId: string): DurableExecution {
    const execution = [...this.executions.values()].find((one) => one.hasCallback(callbackId));
    if (!execution) throw notFound('Callback not found');
    return execution;
  }

  /** Stops all executions, so that no timer is left. */
  stop(): void {
    for (const execution of this.executions.values()) execution.stop();
  }
}
