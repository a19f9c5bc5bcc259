import type { Service } from '../infrastructure/read.ts';
import type { Trigger } from '../infrastructure/read-events.ts';
import { invoke, type LambdaHandler, type LocalFunction } from './lambda.ts';

export interface TriggeredFunction extends LocalFunction {
  deployedName: string;
  triggers: Trigger[];
}

/** The functions of serverless.yml, by name or ARN, as their callers name them. */
export class Functions {
  readonly all: TriggeredFunction[];

  /** @param handlers by the function's name; a function without one is left out */
  constructor(
    {
      functions,
    }: { functions: Pick<Service['functions'][number], 'name' | 'deployedName' | 'timeoutSeconds' | 'triggers'>[] },
    handlers: Record<string, LambdaHandler | undefined>,
  ) {
    this.all = functions.flatMap(({ name, deployedName, timeoutSeconds, triggers }) => {
      const handler = handlers[name];
      return handler ? [{ name, deployedName, timeoutSeconds, triggers, handler }] : [];
    });
  }

  /** Undefined if there is none of that name or ARN. Any alias exists: as on AWS, it names the namespace of the caller. */
  find(nameOrArn: string): TriggeredFunction | undefined {
    const [asked, alias] = nameOrArn.replace(/^arn:[\w-]+:lambda:[\w-]+:\d*:function:/, '').split(':');
    const found = this.all.find(({ name, deployedName }) => asked === name || asked === deployedName);
    return found && alias !== undefined ? { ...found, alias } : found;
  }

  /** Invokes it like an event source, for which nobody waits: returns undefined if it fails, and reports that on standard error. */
  async notify(lambda: TriggeredFunction, event: unknown): Promise<{ result: unknown } | undefined> {
    try {
      return { result: await invoke(lambda, event) };
    } catch (error) {
      console.error(`${lambda.name}: ${(error as Error).message}`);
      return undefined;
    }
  }
}
