import { randomUUID } from 'node:crypto';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda';
import type { LambdaHandler } from '../../../local/lambda.ts';
import type { Problem } from '../../../shared/errors.ts';
import { checkedHandler, UndocumentedAnswer } from './contract.ts';

/** The context with which Lambda starts a function. `remainingMs` is the rest of its time. */
export const lambdaContext = (remainingMs = 60_000): Context =>
  ({
    functionName: 'test',
    functionVersion: '$LATEST',
    invokedFunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:test',
    memoryLimitInMB: '512',
    awsRequestId: randomUUID(),
    logGroupName: '',
    logStreamName: '',
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => remainingMs,
  }) as Context;

/** The context of a call through the alias of the API. */
export function apiContext(context = lambdaContext()): Context {
  return { ...context, invokedFunctionArn: `${context.invokedFunctionArn}:HTTP` };
}

/** An API Gateway event, payload format 2.0. */
export function httpEvent(
  method: 'GET' | 'POST',
  parts: {
    body?: string;
    query?: string;
    headers?: Record<string, string>;
    base64?: boolean;
    authorizer?: object;
  } = {},
): APIGatewayProxyEventV2 {
  return {
    version: '2.0',
    routeKey: `${method} /test`,
    rawPath: '/test',
    rawQueryString: parts.query ?? '',
    headers: parts.headers ?? { 'Content-Type': 'application/json' },
    requestContext: {
      accountId: '000000000000',
      apiId: 'test',
      domainName: 'test',
      domainPrefix: 'test',
      http: { method, path: '/test', protocol: 'HTTP/1.1', sourceIp: '127.0.0.1', userAgent: 'test' },
      requestId: 'gateway-request',
      routeKey: `${method} /test`,
      stage: '$default',
      time: '',
      timeEpoch: 0,
      ...(parts.authorizer && { authorizer: parts.authorizer }),
    } as APIGatewayProxyEventV2['requestContext'],
    ...(parts.body !== undefined && { body: parts.body }),
    isBase64Encoded: parts.base64 ?? false,
  };
}

/** An answer in the same form, whichever adapter it came through. */
export interface Answer {
  /** `ok`, or the error code. */
  outcome: string;
  /** The result, or the problem. */
  body: Record<string, unknown> & Partial<Problem>;
  /** HTTP only. */
  status?: number;
  headers?: Record<string, unknown>;
}

/** Checks the answers of a handler, which has the name of its function. */
const checked = (handler: LambdaHandler) => checkedHandler(handler.name, handler);

export async function throughHttp(
  handler: LambdaHandler,
  event: APIGatewayProxyEventV2,
  context = lambdaContext(),
): Promise<Answer> {
  const invokedFunctionArn = `${context.invokedFunctionArn}:HTTP`;
  const result = (await checked(handler)(event, {
    ...context,
    invokedFunctionArn,
  })) as APIGatewayProxyStructuredResultV2;
  const body = JSON.parse(result.body ?? 'null');
  const { statusCode: status = 0, headers = {} } = result;
  return { outcome: status < 400 ? 'ok' : body.code, body, status, headers };
}

export async function throughTask(
  handler: LambdaHandler,
  payload: unknown,
  context = lambdaContext(),
): Promise<Answer> {
  try {
    return { outcome: 'ok', body: (await checked(handler)(payload, context)) as Answer['body'] };
  } catch (error) {
    if (error instanceof UndocumentedAnswer) throw error;
    const { name, message } = error as Error;
    return { outcome: name, body: JSON.parse(message) };
  }
}

export const post = (handler: LambdaHandler, payload: object, context?: Context) =>
  throughHttp(handler, httpEvent('POST', { body: JSON.stringify(payload) }), context);

export const get = (handler: LambdaHandler, query: Record<string, string>, context?: Context) =>
  throughHttp(handler, httpEvent('GET', { query: new URLSearchParams(query).toString() }), context);
