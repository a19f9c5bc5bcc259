import { execFile } from 'node:child_process';
import { type IncomingMessage, request } from 'node:http';
import { join, resolve as pathTo } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import {
  CloudFormationClient,
  DeleteStackCommand,
  UpdateTerminationProtectionCommand,
  waitUntilStackDeleteComplete,
} from '@aws-sdk/client-cloudformation';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  CreateAccessKeyCommand,
  CreateRoleCommand,
  CreateUserCommand,
  IAMClient,
  PutUserPolicyCommand,
} from '@aws-sdk/client-iam';
import { BucketAlreadyOwnedByYou, CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { SFNClient } from '@aws-sdk/client-sfn';
import { inject } from 'vitest';
import { Holdfast, type HoldfastOptions } from '../../../clients/typescript/src/index.ts';
import { type Credentials, signed } from '../../../clients/typescript/src/sigv4.ts';
import manifest from '../../../package.json' with { type: 'json' };

export const REGION = 'eu-west-1';
export const ACCOUNT = '000000000000';
/** The keys of a caller that may do everything. */
export const ROOT = { accessKeyId: 'test', secretAccessKey: 'test' };

const endpoint = `http://127.0.0.1:${inject('port')}`;
export const settings = { endpoint, region: REGION, credentials: ROOT };
export const cloudFormation = new CloudFormationClient(settings);
export const dynamodb = new DynamoDBClient(settings);
export const iam = new IAMClient(settings);
export const s3 = new S3Client({ ...settings, forcePathStyle: true });
export const sfn = new SFNClient(settings);

/** Makes a bucket, unless another file has made it: all files share the emulator, and the pages that they read name the same buckets. */
export async function makeBucket(name: string): Promise<void> {
  const where = { CreateBucketConfiguration: { LocationConstraint: REGION } } as const;
  await s3.send(new CreateBucketCommand({ Bucket: name, ...where })).catch((error) => {
    if (!(error instanceof BucketAlreadyOwnedByYou)) throw error;
  });
}

export interface Run {
  exitCode: number;
  output: string;
}

/** The environment of a shell that works on the emulator. */
export const environment = (credentials: Credentials = ROOT): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: '/nonexistent',
  AWS_ENDPOINT_URL: endpoint,
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  AWS_DEFAULT_REGION: REGION,
});

export function run(
  command: string,
  args: string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<Run> {
  return new Promise((resolve, reject) => {
    const settings = { env: environment(), maxBuffer: 2 ** 24, timeout: 800_000, ...options };
    const child = execFile(command, args, settings, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') reject(error);
      else resolve({ exitCode: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}

/** A call of any API of AWS, with the names of botocore, because many APIs have no client among the packages here. */
export type ApiCall = [service: string, operation: string, parameters: object];

/** Sends calls by botocore. @returns the answer of each, or its `error` */
// biome-ignore lint/suspicious/noExplicitAny: each API has answers of its own, of which a test reads fields
export function describeAll(calls: ApiCall[]): Promise<any[]> {
  return new Promise((resolve, reject) => {
    const python = pathTo('.venv-ministack/bin/python');
    const settings = { env: environment(), maxBuffer: 2 ** 26 };
    const child = execFile(
      python,
      [pathTo('verification/deployment/support/describe.py')],
      settings,
      (error, stdout) => (error ? reject(error) : resolve(JSON.parse(stdout))),
    );
    child.stdin?.end(JSON.stringify(calls));
  });
}

const commandOf = (stage: string, args: string[]) => [
  ...['deployment/main.ts', 'deploy', '--stage', stage],
  ...(args.includes('--plan') ? args : ['--create', '--yes', ...args]),
];

/** A verb of the released command. */
export const holdfast = (args: string[], { from = release, env = {} as NodeJS.ProcessEnv } = {}): Promise<Run> =>
  run(process.execPath, [join(from, 'holdfast.mjs'), ...args], { env: { ...environment(), ...env } });

/** The folder that `npm run release` wrote. */
const release = pathTo('release', `holdfast-${manifest.version}`);

/** `npm run deploy`, without the making of the release. */
export const deploy = (stage: string, args: string[] = [], credentials?: Credentials): Promise<Run> =>
  run(process.execPath, commandOf(stage, args), { env: environment(credentials) });

/** A deployment that must succeed. @returns its outputs, by name */
export async function deployed(stage: string, args: string[] = []): Promise<Record<string, string>> {
  const { exitCode, output } = await deploy(stage, args);
  if (exitCode !== 0) throw new Error(output);
  return Object.fromEntries(output.split('\n').map((line) => line.split(' ') as [string, string]));
}

export async function remove(stage: string): Promise<void> {
  const stack = { StackName: `holdfast-${stage}` };
  await cloudFormation.send(new UpdateTerminationProtectionCommand({ ...stack, EnableTerminationProtection: false }));
  await cloudFormation.send(new DeleteStackCommand(stack));
  await waitUntilStackDeleteComplete({ client: cloudFormation, maxWaitTime: 600, minDelay: 1, maxDelay: 1 }, stack);
}

/** An IAM user with the rights of these statements and no others. @param tags by name */
export async function user(
  name: string,
  statements: object[],
  tags: Record<string, string> = {},
): Promise<Credentials> {
  const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  await iam.send(new CreateUserCommand({ UserName: name, Tags }));
  if (statements.length > 0) await allow(name, statements);
  const { AccessKey } = await iam.send(new CreateAccessKeyCommand({ UserName: name }));
  return { accessKeyId: String(AccessKey?.AccessKeyId), secretAccessKey: String(AccessKey?.SecretAccessKey) };
}

/** A role without any right. @returns its ARN */
export async function serviceRole(name: string, service: string): Promise<string> {
  const { Role } = await iam.send(
    new CreateRoleCommand({
      RoleName: name,
      AssumeRolePolicyDocument: JSON.stringify({
        Version: '2012-10-17',
        Statement: [{ Effect: 'Allow', Principal: { Service: service }, Action: 'sts:AssumeRole' }],
      }),
    }),
  );
  return String(Role?.Arn);
}

export const allow = (name: string, statements: object[]) =>
  iam.send(
    new PutUserPolicyCommand({
      UserName: name,
      PolicyName: 'test',
      PolicyDocument: JSON.stringify({ Version: '2012-10-17', Statement: statements }),
    }),
  );

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: what a call answers, of which a test reads fields
  body: any;
  headers: Record<string, string>;
}

interface Call {
  method?: string;
  body?: unknown;
  credentials?: Credentials | undefined;
  headers?: Record<string, string>;
  /** How often a gateway or a busy machine may fail. */
  tries?: number;
}

interface Sent {
  method: string;
  headers: Record<string, string>;
  body: string;
  signal?: AbortSignal | undefined;
}

/** @param url of the API, which is on this machine, although no resolver knows its name */
async function send(
  url: URL,
  { method, headers, body, signal }: Sent,
): Promise<{ response: IncomingMessage; text: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const to = { host: '127.0.0.1', port: inject('port'), method, path: url.pathname + url.search };
    request({ ...to, headers: { ...headers, host: url.host }, ...(signal && { signal }) }, resolve)
      .on('error', reject)
      .end(body);
  });
  return { response, text: (await buffer(response)).toString() };
}

/** A request as the test sends it. What a busy machine or a gateway could not answer (502 to 504) is sent again. */
export async function call(url: string, options: Call = {}): Promise<Answer> {
  for (let triesLeft = options.tries ?? 30; ; triesLeft--) {
    const answer = await callOnce(url, options);
    if (answer.status < 502 || triesLeft <= 1) return answer;
    await delay(1000);
  }
}

async function callOnce(url: string, { method = 'POST', body, credentials, headers = {} }: Call): Promise<Answer> {
  const target = new URL(url);
  const text = body === undefined ? '' : JSON.stringify(body);
  const unsigned = { ...(text && { 'content-type': 'application/json' }), ...headers };
  const scope = { region: REGION, service: 'execute-api', at: Date.now() };
  const sent = credentials
    ? await signed({ method, url: target, headers: unsigned, body: text }, credentials, scope)
    : unsigned;
  const { response, text: answer } = await send(target, { method, headers: sent, body: text });
  return {
    status: response.statusCode ?? 0,
    body: answer.startsWith('{') ? JSON.parse(answer) : answer,
    headers: response.headers as Record<string, string>,
  };
}

/** The client package, as any caller uses it: it tries again where a gateway fails. */
export const client = (endpoint: string, options: Pick<HoldfastOptions, 'holder' | 'onEvent'>): Holdfast =>
  new Holdfast({
    ...{ endpoint, region: REGION, credentials: () => ROOT, ...options },
    fetch: async (url, { method = 'GET', headers, body, signal } = {}) => {
      const sent = {
        headers: headers as Record<string, string>,
        body: String(body ?? ''),
        signal: signal ?? undefined,
      };
      const { response, text } = await send(new URL(String(url)), { method, ...sent });
      return new Response(text, { status: response.statusCode ?? 0 });
    },
  });
