import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Listening, listen } from '../listen.ts';
import { ApiError, apiError } from './errors.ts';
import type { StepFunctions } from './service.ts';

/**
 * Serves the Step Functions API, in the AWS JSON 1.0 protocol. SDKs and `aws stepfunctions` find it through AWS_ENDPOINT_URL_SFN. Signatures are not checked.
 */
export async function startEndpoint(service: () => Promise<StepFunctions>, port: number): Promise<Listening> {
  return listen(async (request, response) => {
    try {
      reply(response, 200, await answer(service, request.headers['x-amz-target'], await text(request)));
    } catch (error) {
      const { name, message } = error as Error;
      if (error instanceof ApiError) return reply(response, 400, { __type: name, message });
      console.error(`Step Functions: ${name}: ${message}`);
      reply(response, 500, { __type: 'InternalFailure', message });
    }
  }, port);
}

async function answer(
  service: () => Promise<StepFunctions>,
  target: string | string[] | undefined,
  body: string,
): Promise<object> {
  const { operations } = await import('./api.ts');
  const [, name = ''] = /^AWSStepFunctions\.(\w+)$/.exec(String(target)) ?? [];
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (!operation) throw apiError('UnknownOperationException', `the local stack does not know the operation ${target}`);
  return operation(await service(), parsed(body));
}

function parsed(body: string): Record<string, never> {
  try {
    return Object(JSON.parse(body || '{}'));
  } catch {
    throw apiError('SerializationException', 'the request is not JSON');
  }
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-requestid': randomUUID() });
  response.end(JSON.stringify(body));
}
