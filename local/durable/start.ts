import type { Events } from '../events.ts';
import { USER_TIMEOUT_SECONDS, type UserHandlers } from '../handler-files.ts';
import { invoke, type LambdaHandler } from '../lambda.ts';
import { startApi } from './api.ts';
import { DurableFunctions, type DurableOptions } from './service.ts';
import { statusChange } from './status-change.ts';

export interface LocalDurableFunctions {
  /** The value of AWS_ENDPOINT_URL_LAMBDA, by which SDKs and the AWS CLI find the server. */
  endpoint: string;
  service: DurableFunctions;
  /** Stops all executions. */
  stop(): Promise<void>;
}

interface LocalOptions extends Pick<DurableOptions, 'secondMs'> {
  /** The handlers of `withDurableExecution`, by the name of the function. */
  handlers: UserHandlers;
  port: number;
}

/** Runs durable functions in this process. Each change of status goes to the event bus. */
export async function startDurableFunctions(
  events: Pick<Events, 'dispatch'>,
  { handlers, port, ...options }: LocalOptions,
): Promise<LocalDurableFunctions> {
  const service = new DurableFunctions({
    functions: Object.keys(handlers),
    invoke: async (name, event) => {
      const handler = (await handlers[name]?.()) as LambdaHandler;
      return invoke({ name, handler, timeoutSeconds: USER_TIMEOUT_SECONDS }, event);
    },
    statusChanged: (execution) => events.dispatch(statusChange(execution)),
    ...options,
  });
  const { url, stop } = await startApi(service, port);
  return {
    endpoint: url,
    service,
    stop: async () => {
      service.stop();
      await stop();
    },
  };
}
