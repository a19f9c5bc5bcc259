import { statSync } from 'node:fs';
import { basename, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Events } from '../events.ts';
import { invoke, type LambdaHandler } from '../lambda.ts';
import { startApi } from './api.ts';
import { DurableFunctions, type DurableOptions } from './service.ts';
import { statusChange } from './status-change.ts';

export interface LocalDurableFunctions {
  /** Named by AWS_ENDPOINT_URL_LAMBDA for the SDKs and the command line. */
  endpoint: string;
  service: DurableFunctions;
  /** Stops all executions. */
  stop(): Promise<void>;
}

/** The timeout of each durable function, in seconds. */
const TIMEOUT_SECONDS = 60;

interface LocalOptions extends Pick<DurableOptions, 'secondMs'> {
  /** The handlers of `withDurableExecution`, by the names of the functions. */
  handlers: Record<string, () => Promise<LambdaHandler>>;
  port: number;
}

/** Durable functions in this process; each change of status goes to the event bus. */
export async function startDurableFunctions(
  events: Pick<Events, 'dispatch'>,
  { handlers, port, ...options }: LocalOptions,
): Promise<LocalDurableFunctions> {
  const service = new DurableFunctions({
    functions: Object.keys(handlers),
    invoke: async (name, event) => {
      const handler = (await handlers[name]?.()) as LambdaHandler;
      return invoke({ name, handler, timeoutSeconds: TIMEOUT_SECONDS }, event);
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

/** The names that Lambda allows. */
const NAME = /^[\w-]{1,64}$/;

/**
 * The handlers in modules of the user, which are loaded at their first invocation. A function has the name of its file.
 * @throws Error that names the file, if there is no such file, Lambda does not allow the name, or another file has the same name; at the
 * invocation, if the module has no export `handler`
 */
export function handlersIn(files: readonly string[]): LocalOptions['handlers'] {
  const fileOf = new Map<string, string>();
  for (const file of files) {
    const name = basename(file, extname(file));
    const other = fileOf.get(name);
    if (!statSync(file, { throwIfNoEntry: false })?.isFile())
      throw new Error(`--durable ${file}: there is no such file`);
    if (!NAME.test(name))
      throw new Error(
        `--durable ${file}: the name may have up to 64 letters, digits, hyphens and underscores, and the extension`,
      );
    if (other !== undefined) throw new Error(`--durable ${file}: ${other} has the same name`);
    fileOf.set(name, file);
  }
  return Object.fromEntries([...fileOf].map(([name, file]) => [name, () => handlerIn(file)]));
}

async function handlerIn(file: string): Promise<LambdaHandler> {
  const { handler } = (await import(pathToFileURL(resolve(file)).href)) as { handler?: LambdaHandler };
  if (!handler) throw new Error(`${file} does not export handler`);
  return handler;
}
