import type { Service } from '../infrastructure/read.ts';
import type { Trigger } from '../infrastructure/read-events.ts';
import { USER_TIMEOUT_SECONDS, type UserHandlers } from './handler-files.ts';
import { invoke, type LambdaHandler, type LocalFunction } from './lambda.ts';

export interface TriggeredFunction extends LocalFunction {
  deployedName: string;
  triggers: Trigger[];
}

/** The functions of serverless.yml and of the user. Callers find them by name or ARN. */
export class Functions {
  readonly all: TriggeredFunction[];

  /**
   * @param handlers the handlers by the name of the function; a function without a handler is left out
   * @param userHandlers the handlers of the user, which state machines may call
   * @throws Error if the service has a function of that name
   */
  constructor(
    {
      functions,
    }: { functions: Pick<Service['functions'][number], 'name' | 'deployedName' | 'timeoutSeconds' | 'triggers'>[] },
    handlers: Record<string, LambdaHandler | undefined>,
    userHandlers: UserHandlers = {},
  ) {
    this.all = functions.flatMap(({ name, deployedName, timeoutSeconds, triggers }) => {
      const handler = handlers[name];
      return handler ? [{ name, deployedName, timeoutSeconds, triggers, handler }] : [];
    });
    for (const [name, load] of Object.entries(userHandlers)) {
      if (this.find(name)) throw new Error(`--function ${name}: the service has a function of this name`);
      const handler: LambdaHandler = async (event, context) => (await load())(event, context);
      this.all.push({ name, deployedName: name, timeoutSeconds: USER_TIMEOUT_SECONDS, triggers: [], handler });
    }
  }

  /** Finds a function by its name or ARN. Every alias exists, because it names the namespace of the caller. */
  find(nameOrArn: string): TriggeredFunction | undefined {
    const [wanted, alias] = nameOrArn.replace(/^arn:[\w-]+:lambda:[\w-]+:\d*:function:/, '').split(':');
    const found = this.all.find(({ name, deployedName }) => wanted === name || wanted === deployedName);
    return found && alias !== undefined ? { ...found, alias } : found;
  }

  /** Invokes a function as an event source does. If the function fails, writes that to standard error, and returns undefined. */
  async invokeForEvent(lambda: TriggeredFunction, event: unknown): Promise<{ result: unknown } | undefined> {
    try {
      return { result: await invoke(lambda, event) };
    } catch (error) {
      console.error(`${lambda.name}: ${(error as Error).message}`);
      return undefined;
    }
  }
}
