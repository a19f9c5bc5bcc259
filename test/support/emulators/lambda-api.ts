import { json } from 'node:stream/consumers';
import { FunctionError, invoke, type LambdaHandler } from '../../../local/lambda.ts';
import { listen } from '../../../local/listen.ts';

/** The part of Lambda's API that invokes functions, over the handlers of a test. */
export async function startLambdaApi(handlers: Record<string, unknown>, prefix: string) {
  return listen(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://lambda');
    const [, deployed = ''] = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/.exec(pathname) ?? [];
    const alias = searchParams.get('Qualifier');
    const name = decodeURIComponent(deployed).slice(prefix.length);
    const handler = handlers[name] as LambdaHandler | undefined;
    const reply = (status: number, body: unknown, headers: Record<string, string> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    const event = await json(request);
    if (!deployed.startsWith(prefix) || !handler)
      return reply(404, { Message: 'Function not found' }, { 'x-amzn-errortype': 'ResourceNotFoundException' });
    try {
      reply(200, await invoke({ name, handler, timeoutSeconds: 29, ...(alias !== null && { alias }) }, event));
    } catch (error) {
      if (!(error instanceof FunctionError)) throw error;
      reply(200, error.report, { 'x-amz-function-error': 'Unhandled' });
    }
  });
}
