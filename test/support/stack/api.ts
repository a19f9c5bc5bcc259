import { inject } from 'vitest';
import { startGateway } from '../../../local/gateway.ts';
import type { LambdaHandler } from '../../../local/lambda.ts';
import { checkedHandler } from './contract.ts';

interface ApiOptions {
  port?: number;
  /** Serves other paths, as `npm start` serves the page. */
  page?: NonNullable<Parameters<typeof startGateway>[2]>['page'];
  authorizer?: NonNullable<Parameters<typeof startGateway>[2]>['authorizer'];
}

/** Serves the routes of serverless.yml over HTTP, on a free port, for the functions of which a test has handlers. */
export async function startApi(handlers: Record<string, unknown>, { port = 0, ...options }: ApiOptions = {}) {
  const served = inject('service').functions.filter(({ name }) => name in handlers);
  return startGateway(
    served.flatMap(({ name, timeoutSeconds, routes }) =>
      routes.map((route) => ({
        ...route,
        name,
        timeoutSeconds,
        handler: checkedHandler(name, handlers[name] as LambdaHandler),
      })),
    ),
    port,
    options,
  );
}
