import type { SFNClient, SFNClientConfig } from '@aws-sdk/client-sfn';
import { AwsRestJsonProtocol } from '@aws-sdk/core/protocols';
import { Command } from '@smithy/core/client';
import { getEndpointPlugin } from '@smithy/core/endpoints';
import type { MetadataBearer, StaticOperationSchema, StaticStructureSchema } from '@smithy/types';
import { stepFunctionsClient } from './step-functions.ts';

// Holdfast needs three operations of durable functions. @aws-sdk/client-lambda has the schemas of all operations of
// Lambda, and would add 72 kB to each function that notifies waiters, an eighth of its bundle. So this file takes the
// client of Step Functions, which these functions load anyway, and gives it the protocol, the endpoint and the
// signature of Lambda.

const NAMESPACE = 'com.amazonaws.lambda';

/**
 * A client of Lambda for the commands of this file. Like `stepFunctionsClient`, it sends each request a single time
 * over a fresh connection: a callback accepts one result, and the answer to a second try does not say whether the first
 * try or another caller completed the callback.
 */
function lambdaClient(overrides: SFNClientConfig = {}): SFNClient {
  const { endpointProvider } = stepFunctionsClient({ region: 'us-east-1' }).config;
  return stepFunctionsClient({
    serviceId: 'Lambda', // so that AWS_ENDPOINT_URL_LAMBDA sets its endpoint
    protocol: AwsRestJsonProtocol,
    protocolSettings: { defaultNamespace: NAMESPACE, errorTypeRegistries: [] },
    endpointProvider: (parameters, context) => {
      const { url, ...endpoint } = endpointProvider(parameters, context);
      const ofLambda = new URL(url);
      ofLambda.hostname = url.hostname.replace(/^states(?=[.-])/, 'lambda');
      const signing = { name: 'sigv4', signingName: 'lambda', signingRegion: parameters.Region ?? '', properties: {} };
      return { ...endpoint, url: ofLambda, properties: { authSchemes: [signing] } };
    },
    ...overrides,
  });
}

/** The numbers that the SDK's schemas use for kinds of shapes. */
const [STRUCTURE, OPERATION] = [3, 9] as const;
/** The numbers that the SDK's schemas use for types of members. */
const [TEXT, FLAG, TIME, BLOB] = [0, 2, 4, 21] as const;
/** The bits that the SDK's schemas set if a member is a part of the path, or the whole body. */
const [IN_PATH, IS_BODY] = [1, 16] as const;

const structure = (name: string, members: Record<string, unknown>): StaticStructureSchema =>
  [STRUCTURE, NAMESPACE, name, 0, Object.keys(members), Object.values(members)] as StaticStructureSchema;

interface OperationDescription {
  name: string;
  http: [method: 'GET' | 'POST', path: string];
  input: Record<string, unknown>;
  output?: Record<string, unknown>;
}

/** Builds a class for a command of Lambda, as the SDK does for its own commands. */
function command<Input extends object, Output extends object>({
  name,
  http,
  input,
  output = {},
}: OperationDescription) {
  const schema: StaticOperationSchema = [
    ...([OPERATION, NAMESPACE, name, { http: [...http, 200] }] as const),
    ...[structure(`${name}Request`, input), structure(`${name}Response`, output)],
  ] as never;
  return Command.classBuilder<Input, Output & MetadataBearer, SFNClient['config'], object, MetadataBearer>()
    .ep({
      UseFIPS: { type: 'builtInParams', name: 'useFipsEndpoint' },
      Endpoint: { type: 'builtInParams', name: 'endpoint' },
      Region: { type: 'builtInParams', name: 'region' },
      UseDualStack: { type: 'builtInParams', name: 'useDualstackEndpoint' },
    })
    .m((Made, _, config) => [getEndpointPlugin(config as never, Made.getEndpointParameterInstructions())])
    .s('AWSLambda', name, {})
    .n('LambdaClient', `${name}Command`)
    .sc(schema)
    .build();
}

const CALLBACK = '/2025-12-01/durable-execution-callbacks/{CallbackId}';

class SendDurableExecutionCallbackSuccessCommand extends command<{ CallbackId: string; Result: Uint8Array }, object>({
  name: 'SendDurableExecutionCallbackSuccess',
  http: ['POST', `${CALLBACK}/succeed`],
  input: { CallbackId: [TEXT, IN_PATH], Result: [BLOB, IS_BODY] },
}) {}

interface ErrorObject {
  ErrorType: string;
  ErrorMessage: string;
  ErrorData: string;
}

class SendDurableExecutionCallbackFailureCommand extends command<{ CallbackId: string; Error: ErrorObject }, object>({
  name: 'SendDurableExecutionCallbackFailure',
  http: ['POST', `${CALLBACK}/fail`],
  input: {
    CallbackId: [TEXT, IN_PATH],
    Error: [structure('ErrorObject', { ErrorType: TEXT, ErrorMessage: TEXT, ErrorData: TEXT }), IS_BODY],
  },
}) {}

interface DurableExecution {
  /** RUNNING, SUCCEEDED, FAILED, TIMED_OUT or STOPPED. */
  Status?: string;
  EndTimestamp?: Date;
}

class GetDurableExecutionCommand extends command<
  { DurableExecutionArn: string; IncludeExecutionData: boolean },
  DurableExecution
>({
  name: 'GetDurableExecution',
  http: ['GET', '/2025-12-01/durable-executions/{DurableExecutionArn}'],
  input: {
    DurableExecutionArn: [TEXT, IN_PATH],
    IncludeExecutionData: [FLAG, { httpQuery: 'IncludeExecutionData' }],
  },
  output: { Status: TEXT, EndTimestamp: TIME },
}) {}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/**
 * The commands that Holdfast sends to Lambda about durable functions, and the client that sends them, each a single
 * time.
 */
export const durableFunctions = (overrides: SFNClientConfig = {}) => ({
  client: lambdaClient(overrides),
  /** @param result JSON */
  success: (callbackId: string, result: string) =>
    new SendDurableExecutionCallbackSuccessCommand({ CallbackId: callbackId, Result: bytes(result) }),
  failure: (callbackId: string, error: ErrorObject) =>
    new SendDurableExecutionCallbackFailureCommand({ CallbackId: callbackId, Error: error }),
  /** Reads the state of an execution without its input, result and error, which Holdfast must not read. */
  execution: (arn: string) => new GetDurableExecutionCommand({ DurableExecutionArn: arn, IncludeExecutionData: false }),
});

export type DurableFunctions = ReturnType<typeof durableFunctions>;
