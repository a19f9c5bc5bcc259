import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda';

export type LambdaHandler = (event: unknown, context: Context) => Promise<unknown>;

export interface Route {
  method: string;
  path: string;
  functionName: string;
  timeoutSeconds: number;
  handler: LambdaHandler;
}

/** Lambda takes six megabytes at a synchronous invocation, and a body is most of its event. */
const MOST_EVENT_BYTES = 6 * 1024 * 1024;

/**
 * What API Gateway's HTTP API does in front of the functions, without its authorizers: routes, payload format 2.0,
 * Lambda's payload limit and function timeouts, and the gateway's own answers where no function answers.
 */
export async function startGateway(routes: Route[], port: number): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    answer(routes, request, response).catch((error: Error) => {
      console.error(`${request.method} ${request.url}: ${error.name}: ${error.message}`);
      reply(response, 500, { message: 'Internal Server Error' });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${actual}` };
}

async function answer(routes: Route[], request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  if (request.method === 'GET' && url.pathname === '/v1/health') return reply(response, 200, { status: 'ready' });
  const route = routes.find(({ method, path }) => method === request.method && path === url.pathname);
  if (!route) return reply(response, 404, { message: 'Not Found' });

  const body = await read(request);
  const event = body && httpEvent(request, url, route, body);
  if (!event) return reply(response, 413, { message: 'Request Too Long' });
  const { context, timedOut } = invocation(route);
  const answered = [route.handler(event, context), timedOut, gatewayTimeout()];
  const result = (await Promise.race(answered)) as APIGatewayProxyStructuredResultV2;
  response.writeHead(result.statusCode ?? 200, result.headers as Record<string, string>);
  response.end(result.body);
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Undefined when the body is larger than any function can be sent. */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= MOST_EVENT_BYTES) chunks.push(chunk); // the rest is read and dropped, so that the answer gets through
  }
  return size <= MOST_EVENT_BYTES ? Buffer.concat(chunks) : undefined;
}

const TEXT_TYPE = /^(text\/|application\/(.*\+)?(json|javascript|xml))/i;

function httpEvent(request: IncomingMessage, url: URL, route: Route, body: Buffer): APIGatewayProxyEventV2 | undefined {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value);
  const isBase64Encoded = body.length > 0 && !TEXT_TYPE.test(headers['content-type'] ?? '');
  const event = {
    version: '2.0',
    routeKey: `${route.method} ${route.path}`,
    rawPath: url.pathname,
    rawQueryString: url.search.slice(1),
    headers,
    requestContext: {
      accountId: '000000000000',
      apiId: 'local',
      domainName: headers.host ?? '',
      domainPrefix: 'local',
      http: {
        method: route.method,
        path: url.pathname,
        protocol: 'HTTP/1.1',
        sourceIp: '127.0.0.1',
        userAgent: headers['user-agent'] ?? '',
      },
      requestId: randomUUID(),
      routeKey: `${route.method} ${route.path}`,
      stage: '$default',
      time: new Date().toISOString(),
      timeEpoch: Date.now(),
    },
    ...(body.length > 0 && { body: body.toString(isBase64Encoded ? 'base64' : 'utf8') }),
    isBase64Encoded,
  };
  return Buffer.byteLength(JSON.stringify(event)) <= MOST_EVENT_BYTES ? event : undefined;
}

/** What an HTTP API says to its caller while a function with more time goes on. */
function gatewayTimeout(): Promise<APIGatewayProxyStructuredResultV2> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ message: 'Service Unavailable' });
  return new Promise((resolve) => {
    setTimeout(() => resolve({ statusCode: 503, headers, body }), 30_000).unref();
  });
}

function invocation({ functionName, timeoutSeconds }: Route): { context: Context; timedOut: Promise<never> } {
  const endsAt = Date.now() + timeoutSeconds * 1000;
  const context = {
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${functionName}`,
    memoryLimitInMB: '512',
    awsRequestId: randomUUID(),
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: 'local',
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, endsAt - Date.now()),
  } as Context;
  const timedOut = new Promise<never>((_, reject) => {
    setTimeout(
      () => reject(new Error(`Task timed out after ${timeoutSeconds} seconds`)),
      timeoutSeconds * 1000,
    ).unref();
  });
  return { context, timedOut };
}
