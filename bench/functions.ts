import { randomUUID } from 'node:crypto';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda';
import type { LambdaHandler } from '../local/lambda.ts';

/** Calls the built function in dist/`folder` as API Gateway does. @throws Error with the code of any answer but a success */
export async function builtFunction(folder: string) {
  const { prepare, read } = await preparedFunction(folder);
  return async <Output>(payload: object): Promise<Output> => read(await prepare(payload)());
}

/**
 * Prepares the event, calls the function, and reads its answer as three steps, so that a clock can count only the call.
 * @param as what the gateway makes of the event for another route or caller
 */
export async function preparedFunction(
  folder: string,
  as: (event: APIGatewayProxyEventV2) => APIGatewayProxyEventV2 = (event) => event,
) {
  const { handler } = (await import(`../dist/${folder}/index.mjs`)) as { handler: LambdaHandler };
  return {
    prepare: (payload: object): (() => Promise<Result>) => {
      const [event, invocation] = [as(gatewayEvent(folder, payload)), context(folder)];
      return async () => {
        const result = (await handler(event, invocation)) as Result;
        const { statusCode = 0, body = '' } = result;
        if (statusCode < 400) return result;
        const context = JSON.parse(body);
        throw Object.assign(new Error(`${folder} answered ${body}`), { code: context.code, context });
      };
    },
    read: <Output>({ body = '' }: Result): Output => JSON.parse(body),
  };
}

type Result = APIGatewayProxyStructuredResultV2;

/** An event with the headers that a gateway usually passes on. @param payload the body, or for GET the query */
export const gatewayEvent = (folder: string, payload: object, method = 'POST'): APIGatewayProxyEventV2 => ({
  version: '2.0',
  routeKey: `${method} /v1/${folder}`,
  rawPath: `/v1/${folder}`,
  rawQueryString: method === 'GET' ? new URLSearchParams({ ...payload }).toString() : '',
  headers: {
    accept: '*/*',
    authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`,
    'content-length': '100',
    'content-type': 'application/json',
    host: 'example.execute-api.us-east-1.amazonaws.com',
    'user-agent': 'bench',
    'x-amz-date': '20260101T000000Z',
    'x-amzn-trace-id': 'Root=1-5759e988-bd862e3fe1be46a994272793',
    'x-forwarded-for': '192.0.2.1',
    'x-forwarded-port': '443',
    'x-forwarded-proto': 'https',
  },
  requestContext: {
    accountId: '000000000000',
    apiId: 'bench',
    domainName: 'example.execute-api.us-east-1.amazonaws.com',
    domainPrefix: 'example',
    http: { method, path: `/v1/${folder}`, protocol: 'HTTP/1.1', sourceIp: '192.0.2.1', userAgent: 'bench' },
    requestId: 'bench',
    routeKey: `${method} /v1/${folder}`,
    stage: '$default',
    time: '01/Jan/2026:00:00:00 +0000',
    timeEpoch: 0,
  },
  ...(method === 'POST' && { body: JSON.stringify(payload) }),
  isBase64Encoded: false,
});

/** The timeout of `acquire` in Lambda. */
const INVOCATION_MS = 29_000;

function context(folder: string): Context {
  const endsAt = performance.now() + INVOCATION_MS;
  return {
    functionName: folder,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:us-east-1:000000000000:function:${folder}:HTTP`,
    memoryLimitInMB: '512',
    awsRequestId: randomUUID(),
    logGroupName: '',
    logStreamName: '',
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => endsAt - performance.now(),
  } as Context;
}
