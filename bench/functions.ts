import { randomUUID } from 'node:crypto';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda';
import type { LambdaHandler } from '../local/lambda.ts';

/** The built function in dist/`folder`, called as API Gateway calls it. @throws Error on any answer but success */
export async function builtFunction(folder: string) {
  const { handler } = (await import(`../dist/${folder}/index.mjs`)) as { handler: LambdaHandler };
  return async <Output>(payload: object): Promise<Output> => {
    const { statusCode = 0, body = '' } = (await handler(event(folder, payload), context(folder))) as Result;
    if (statusCode >= 400) throw new Error(`${folder} answered ${body}`);
    return JSON.parse(body);
  };
}

type Result = APIGatewayProxyStructuredResultV2;

/** The headers are what a gateway typically passes on. */
const event = (folder: string, payload: object): APIGatewayProxyEventV2 => ({
  version: '2.0',
  routeKey: `POST /v1/${folder}`,
  rawPath: `/v1/${folder}`,
  rawQueryString: '',
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
    http: { method: 'POST', path: `/v1/${folder}`, protocol: 'HTTP/1.1', sourceIp: '192.0.2.1', userAgent: 'bench' },
    requestId: 'bench',
    routeKey: `POST /v1/${folder}`,
    stage: '$default',
    time: '01/Jan/2026:00:00:00 +0000',
    timeEpoch: 0,
  },
  body: JSON.stringify(payload),
  isBase64Encoded: false,
});

/** Lambda's time for `acquire`. */
const INVOCATION_MS = 29_000;

function context(folder: string): Context {
  const endsAt = performance.now() + INVOCATION_MS;
  return {
    functionName: folder,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:us-east-1:000000000000:function:${folder}`,
    memoryLimitInMB: '512',
    awsRequestId: randomUUID(),
    logGroupName: '',
    logStreamName: '',
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => endsAt - performance.now(),
  } as Context;
}
