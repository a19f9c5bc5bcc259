import type { Events } from '../events.ts';
import type { Functions } from '../functions.ts';
import { invoke } from '../lambda.ts';
import { startEndpoint } from './endpoint.ts';
import { StatesError } from './errors.ts';
import type { Json } from './json.ts';
import type { StepFunctionsOptions as ServiceOptions, StepFunctions } from './service.ts';
import { statusChange } from './status-change.ts';

export interface LocalStepFunctions {
  /** The value of AWS_ENDPOINT_URL_SFN, by which SDKs and the AWS CLI find the server. */
  endpoint: string;
  service(): Promise<StepFunctions>;
  /** Stops all executions. */
  stop(): Promise<void>;
}

interface StepFunctionsOptions extends Omit<ServiceOptions, 'invoke' | 'statusChanged'> {
  stateMachines: { name: string; definition: string }[];
  port: number;
}

/**
 * Runs Step Functions over the functions of this process, with the state machines of serverless.yml. Each change of status goes to the event bus. The
 * interpreter and the validator are loaded at the first request, because most users of the local stack never send one.
 */
export async function startStepFunctions(
  functions: Functions,
  events: Events,
  { stateMachines, port, ...options }: StepFunctionsOptions,
): Promise<LocalStepFunctions> {
  const load = async () => {
    const { StepFunctions } = await import('./service.ts');
    const service = new StepFunctions({
      invoke: async (functionArn, payload) => {
        const lambda = functions.find(functionArn);
        if (!lambda) throw new StatesError('Lambda.ResourceNotFoundException', `Function not found: ${functionArn}`);
        return (await invoke(lambda, payload)) as Json;
      },
      statusChanged: (execution) => events.dispatch(statusChange(execution)),
      ...options,
    });
    for (const machine of stateMachines) service.create(machine);
    return service;
  };
  let loading: Promise<StepFunctions> | undefined;
  const service = () => {
    loading ??= load();
    return loading;
  };
  const { url, stop } = await startEndpoint(service, port);
  return {
    endpoint: url,
    service,
    stop: async () => {
      (await loading)?.stop();
      await stop();
    },
  };
}
