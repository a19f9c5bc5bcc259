import { readService } from '../../infrastructure/read.ts';
import { startGateway } from '../../local/gateway.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { checkedHandler } from './contract.ts';

/** The routes of serverless.yml over HTTP, on a free port, for those functions that a test has handlers of. */
export async function startApi(handlers: Record<string, unknown>) {
  const { functions } = await readService('test');
  const served = functions.filter(({ name }) => name in handlers);
  return startGateway(
    served.flatMap(({ name, timeoutSeconds, routes }) =>
      routes.map((route) => ({
        ...route,
        name,
        timeoutSeconds,
        handler: checkedHandler(name, handlers[name] as LambdaHandler),
      })),
    ),
    0,
  );
}
