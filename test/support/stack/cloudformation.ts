import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { vi } from 'vitest';
import type { Aws } from '../../../deployment/aws.ts';
import { deploy, type Observer } from '../../../deployment/deploy.ts';
import type { ParsedRequest } from '../../../deployment/request.ts';
import type { CloudFormationTemplate } from '../../../infrastructure/cloudformation.ts';
import { listen } from '../../../local/listen.ts';
import { released } from './template.ts';

const ACCOUNT = '111122223333';

interface StackDouble {
  id: string;
  status: string;
  parameters: Record<string, string>;
  tags: Record<string, string>;
  isProtected?: boolean;
  outputs?: Record<string, string>;
  /** The template that the stack has; that of the release if it is left out. */
  template?: CloudFormationTemplate;
}

export interface CloudFormationDouble {
  aws: Aws;
  /** The address of the double, for commands in a process of their own. */
  url: string;
  /** The stacks by name. A test may set any state here. */
  stacks: Map<string, StackDouble>;
  /** The number of change sets that were not deleted. */
  changeSets(): number;
  /** The actions of CloudFormation that arrived. */
  actions: string[];
  /** The requests to S3 except HEAD, in the form `PUT /bucket`. */
  writes: string[];
  /** The account that owns the bucket for the code. S3 lets others in, too, if a request does not name the owner. */
  owner: { account: string };
  /** Whether the default bucket for the code exists. The first PUT makes it. */
  codeBucket: { exists: boolean };
  /** The objects of the bucket, by `/bucket/key`. Each PUT makes a version. */
  objects: Map<string, ObjectDouble>;
  /** The template that CloudFormation reads for a change set, if it is another than that of the stack or the release. */
  read: { template: object | undefined };
  /** The changes of each change set, in pages. */
  changes: { Action: string; LogicalResourceId: string; Replacement?: string }[][];
  /** Lambda's concurrency in the account. Undefined if AWS does not say. */
  concurrency: { limit: number | undefined };
  /** Called when a change set is executed. The stack has the status and the events that it returns. */
  outcome: { of: ((stack: string) => { status: string; events: EventDouble[] } | undefined) | undefined };
  /** Tables that exist, without a key. */
  tables: Set<string>;
  /** The answer of S3 to the creation of the bucket for the code, if another deployment makes it at the same time. */
  race: { answer: string | undefined };
  stop(): Promise<void>;
}

interface ObjectDouble {
  body: string;
  /** SHA-256, in base64. */
  checksum: string;
  version: number;
}

interface EventDouble {
  id: string;
  status: string;
  resource: string;
  reason?: string;
}

/** How many events CloudFormation returns at once. */
const EVENTS_IN_PAGE = 100;

interface ChangeSetDouble extends Pick<StackDouble, 'parameters' | 'tags'> {
  stack: string;
  isSame: boolean;
  /** The template behind the URL. */
  text: string | undefined;
}

/**
 * A double of exactly those calls that a deployment makes, over the wire: stacks of CloudFormation, whose change sets take
 * effect at once, a bucket that takes everything, and tables. A stack that failed to be created takes no change set, as
 * with CloudFormation.
 */
export async function startCloudFormation(): Promise<CloudFormationDouble> {
  const { Parameters = {} } = released;
  const stacks = new Map<string, StackDouble>();
  const changeSets = new Map<string, ChangeSetDouble>();
  const actions: string[] = [];
  const writes: string[] = [];
  const owner = { account: ACCOUNT };
  const codeBucket = { exists: true };
  const objects: CloudFormationDouble['objects'] = new Map();
  const read: CloudFormationDouble['read'] = { template: undefined };
  const changes: CloudFormationDouble['changes'] = [];
  const events = new Map<string, EventDouble[]>();
  const outcome: CloudFormationDouble['outcome'] = { of: undefined };
  const concurrency: CloudFormationDouble['concurrency'] = { limit: 1000 };
  const tables = new Set<string>();
  let made = 0;
  const defaults = Object.fromEntries(
    Object.entries(Parameters).flatMap(([name, { Default }]) =>
      Default === undefined ? [] : [[name, String(Default)]],
    ),
  );

  const calls: Record<string, (of: (name: string) => string, form: URLSearchParams) => string> = {
    DescribeStacks: (of) => {
      const name = nameOf(of('StackName'));
      const stack = stacks.get(name);
      if (of('StackName') !== name && stack?.id !== of('StackName'))
        return described(name, { status: 'DELETE_COMPLETE' });
      if (!stack) throw new Error(`Stack with id ${name} does not exist`);
      return described(name, stack);
    },
    CreateChangeSet: (of, form) => {
      const name = of('StackName');
      const stack = stacks.get(name);
      const isNew = of('ChangeSetType') === 'CREATE';
      if (isNew ? stack && stack.status !== 'REVIEW_IN_PROGRESS' : !stack?.status.endsWith('_COMPLETE'))
        throw new Error(`Stack ${name} is ${stack?.status} and cannot be changed`);
      made += 1;
      const id = `arn:aws:cloudformation:eu-west-1:111122223333:changeSet/${of('ChangeSetName')}/${made}`;
      const kept = listed(form, 'Parameters', ['ParameterKey', 'UsePreviousValue']);
      const previous = Object.entries(stack?.parameters ?? {}).filter(([one]) => kept[one] === 'true');
      const given = listed(form, 'Parameters', ['ParameterKey', 'ParameterValue']);
      const parameters = { ...defaults, ...given, ...Object.fromEntries(previous) };
      const tags = listed(form, 'Tags', ['Key', 'Value']);
      const isSame = JSON.stringify([stack?.parameters, stack?.tags]) === JSON.stringify([parameters, tags]);
      const text = objects.get(new URL(of('TemplateURL') || 'http://none').pathname)?.body;
      changeSets.set(id, { stack: name, parameters, tags, isSame, text });
      if (isNew) stacks.set(name, { id: idOf(name, made), status: 'REVIEW_IN_PROGRESS', parameters: {}, tags: {} });
      return `<Id>${id}</Id><StackId>${stacks.get(name)?.id}</StackId>`;
    },
    DescribeChangeSet: (of) =>
      changeSets.get(of('ChangeSetName'))?.isSame
        ? `<Status>FAILED</Status><StatusReason>The submitted information didn't contain changes.</StatusReason>`
        : paged(changes, of('NextToken')),
    ExecuteChangeSet: (of) => {
      const { stack: name, parameters, tags, text } = changeSets.get(of('ChangeSetName')) as ChangeSetDouble;
      const before = stacks.get(name) as StackDouble;
      const status = before.status === 'REVIEW_IN_PROGRESS' ? 'CREATE_COMPLETE' : 'UPDATE_COMPLETE';
      const other = outcome.of?.(name);
      const sent = text !== undefined && { template: JSON.parse(text) };
      stacks.set(name, { ...before, ...sent, status: other?.status ?? status, parameters, tags });
      events.set(name, [...(other?.events ?? []).toReversed(), ...(events.get(name) ?? [])]);
      return '';
    },
    GetCallerIdentity: () => `<Arn>arn:aws:iam::${ACCOUNT}:user/test</Arn><Account>${ACCOUNT}</Account>`,
    DescribeStackEvents: (of) => {
      const at = Number(of('NextToken') || 0);
      const all = events.get(of('StackName')) ?? [];
      const next = at + EVENTS_IN_PAGE < all.length ? `<NextToken>${at + EVENTS_IN_PAGE}</NextToken>` : '';
      return `<StackEvents>${all
        .slice(at, at + EVENTS_IN_PAGE)
        .map(eventText)
        .join('')}</StackEvents>${next}`;
    },
    GetTemplate: (of) => {
      const changeSet = changeSets.get(of('ChangeSetName'));
      const sent = read.template ? JSON.stringify(read.template) : changeSet?.text;
      const text = (changeSet && sent) ?? JSON.stringify(stacks.get(of('StackName'))?.template ?? released);
      return `<TemplateBody>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</TemplateBody>`;
    },
    UpdateTerminationProtection: (of) => {
      const stack = stacks.get(of('StackName')) as StackDouble;
      stack.isProtected = of('EnableTerminationProtection') === 'true';
      return `<StackId>${stack.id}</StackId>`;
    },
    DeleteChangeSet: (of) => String(changeSets.delete(of('ChangeSetName')) && ''),
    DeleteStack: (of) => {
      const name = nameOf(of('StackName'));
      if (of('StackName') === name || stacks.get(name)?.id === of('StackName')) stacks.delete(name);
      return '';
    },
  };

  const race: { answer: string | undefined } = { answer: undefined };

  const { url, stop } = await listen(async (request, response) => {
    const target = String(request.headers['x-amz-target'] ?? '');
    const body = await text(request);
    if (target) {
      const { TableName } = JSON.parse(body);
      const there = tables.has(TableName);
      const type = 'com.amazonaws.dynamodb.v20120810#ResourceNotFoundException';
      response.writeHead(there ? 200 : 400, { 'content-type': 'application/x-amz-json-1.0' });
      response.end(JSON.stringify(there ? { Table: { TableName } } : { __type: type, message: TableName }));
      return;
    }
    if (request.url === '/2016-08-19/account-settings') {
      const { limit } = concurrency;
      response.setHeader('x-amzn-errortype', 'AccessDeniedException');
      response.writeHead(limit === undefined ? 403 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ AccountLimit: { ConcurrentExecutions: limit } }));
      return;
    }
    const form = new URLSearchParams(body);
    const action = request.method === 'POST' && form.get('Action');
    if (!action) {
      // The only bucket is that for the code.
      const expected = request.headers['x-amz-expected-bucket-owner'];
      if (expected !== undefined && expected !== owner.account) {
        response.writeHead(403).end();
        return;
      }
      if (request.method !== 'HEAD') writes.push(`${request.method} ${String(request.url).split('?x-id')[0]}`);
      if (race.answer && request.method === 'PUT') {
        const fault = `<Error><Code>${race.answer}</Code><Message>another deployment makes it</Message></Error>`;
        race.answer = undefined;
        response.writeHead(409, { 'content-type': 'application/xml' }).end(fault);
        return;
      }
      if (request.method === 'PUT') codeBucket.exists = true;
      const path = new URL(String(request.url), 'http://s3').pathname;
      const checksum = String(request.headers['x-amz-checksum-sha256'] ?? '');
      const before = objects.get(path);
      if (request.method === 'PUT' && checksum)
        objects.set(path, { body, checksum, version: (before?.version ?? 0) + 1 });
      const object = objects.get(path);
      if (object) response.setHeader('x-amz-version-id', `v${object.version}`);
      if (object && request.headers['x-amz-checksum-mode'] === 'ENABLED')
        response.setHeader('x-amz-checksum-sha256', object.checksum);
      const isBucket = /^\/holdfast-code-[^/]*\/?(\?|$)/.test(String(request.url));
      const isThere = request.method === 'PUT' || object !== undefined || (isBucket && codeBucket.exists);
      response.writeHead(isThere && !race.answer ? 200 : 404).end();
      return;
    }
    actions.push(action);
    response.setHeader('content-type', 'text/xml');
    try {
      const result = calls[action]?.((name) => form.get(name) ?? '', form);
      if (result === undefined) throw new Error(`the double does not know ${action}`);
      response.end(`<${action}Response><${action}Result>${result}</${action}Result></${action}Response>`);
    } catch (error) {
      const fault = `<Code>ValidationError</Code><Message>${(error as Error).message}</Message>`;
      response.writeHead(400).end(`<ErrorResponse><Error><Type>Sender</Type>${fault}</Error></ErrorResponse>`);
    }
  });

  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const settings = { endpoint: url, region: 'eu-west-1', credentials, maxAttempts: 1 };
  const cloudFormation = new CloudFormationClient(settings);
  const dynamodb = new DynamoDBClient(settings);
  const lambda = new LambdaClient(settings);
  const s3 = new S3Client({ ...settings, forcePathStyle: true });
  const place = { account: ACCOUNT, region: 'eu-west-1', partition: 'aws' };
  return {
    aws: { cloudFormation, dynamodb, lambda, s3, ...place },
    changeSets: () => changeSets.size,
    ...{
      url,
      stacks,
      actions,
      writes,
      owner,
      codeBucket,
      objects,
      read,
      changes,
      concurrency,
      outcome,
      tables,
      race,
      stop,
    },
  };
}

export const idOf = (name: string, number: number): string =>
  `arn:aws:cloudformation:eu-west-1:111122223333:stack/${name}/${number}`;

/** The name of a stack, which calls may also name by its id. */
const nameOf = (stack: string): string => stack.split('/')[1] ?? stack;

function paged(pages: CloudFormationDouble['changes'], token: string): string {
  const at = Number(token || 0);
  const members = (pages[at] ?? []).map((change) => {
    const fields = Object.entries({ ResourceType: 'AWS::Test::Type', ...change });
    return `<member><Type>Resource</Type><ResourceChange>${fields.map(([key, value]) => `<${key}>${value}</${key}>`).join('')}</ResourceChange></member>`;
  });
  const next = at + 1 < pages.length ? `<NextToken>${at + 1}</NextToken>` : '';
  return `<Status>CREATE_COMPLETE</Status><Changes>${members.join('')}</Changes>${next}`;
}

const eventText = ({ id, status, resource, reason = '' }: EventDouble) =>
  `<member><EventId>${id}</EventId><ResourceStatus>${status}</ResourceStatus><LogicalResourceId>${resource}</LogicalResourceId>
   <ResourceType>AWS::Test::Type</ResourceType><ResourceStatusReason>${reason}</ResourceStatusReason></member>`;

const described = (name: string, stack: Partial<StackDouble>) => {
  const { id = '', status = '', parameters = {}, tags = {}, isProtected = false } = stack;
  const { outputs = { ApiUrl: 'https://api.test' } } = stack;
  const members = (all: Record<string, string>, key: string, value: string) =>
    Object.entries(all).map(([one, its]) => `<member><${key}>${one}</${key}><${value}>${its}</${value}></member>`);
  return `<Stacks><member><StackName>${name}</StackName><StackId>${id}</StackId><StackStatus>${status}</StackStatus>
    <EnableTerminationProtection>${isProtected}</EnableTerminationProtection>
    <Outputs>${members(outputs, 'OutputKey', 'OutputValue').join('')}</Outputs>
    <Parameters>${members(parameters, 'ParameterKey', 'ParameterValue').join('')}</Parameters>
    <Tags>${members(tags, 'Key', 'Value').join('')}</Tags></member></Stacks>`;
};

function listed(form: URLSearchParams, list: string, [key, value]: [string, string]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 1; form.has(`${list}.member.${at}.${key}`); at += 1)
    found[String(form.get(`${list}.member.${at}.${key}`))] = form.get(`${list}.member.${at}.${value}`) ?? '';
  return found;
}

/** A deployment of the stage `prod` that sets nothing. */
const ORDER: ParsedRequest = {
  stage: 'prod',
  given: {},
  reset: [],
  tags: [],
  untag: [],
  allowedChanges: [],
  mayCreate: true,
  isPlan: false,
};

/** The release, without the code of the functions. */
const artifact = { template: released, templateText: JSON.stringify(released), zips: new Map<string, Buffer>() };

/** An operator who consents, and collects in `said` what the command says. */
const consenting = (said: string[]): Observer => ({
  say: (line) => void said.push(line),
  onChanges: (changes, isNew) => void said.push(`${changes.length > 0 ? 'changes' : 'none'}, ${isNew ? 'new' : 'old'}`),
  onEvent: () => {},
  confirm: async () => true,
});

interface Deployment {
  /** What the operator reads. */
  said: string[];
  /** The differences from a deployment of the stage `prod` without settings. */
  order?: Partial<ParsedRequest>;
  /** The differences from an operator who consents. */
  observer?: Partial<Observer>;
  zips?: Map<string, Buffer>;
}

/** Deploys the release, without the code of the functions unless it is given. */
export const deployTo = (aws: Aws, { said, order, observer, zips = artifact.zips }: Deployment) =>
  deploy(aws, { artifact: { ...artifact, zips }, order: { ...ORDER, ...order } }, { ...consenting(said), ...observer });

/**
 * Runs a command of a deployment in this process, at no terminal.
 * @param env besides credentials. An undefined value removes a variable
 * @returns the exit code, and what the command printed
 */
export async function printed(command: () => Promise<number>, env: Record<string, string | undefined>) {
  let output = '';
  const note = (line = '') => {
    output += `${line}\n`;
  };
  const spies = [
    ...(['log', 'error'] as const).map((method) => vi.spyOn(console, method).mockImplementation(note)),
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(new PassThrough() as never),
  ];
  for (const [name, value] of Object.entries({ HOME: '/nonexistent', ...env })) vi.stubEnv(name, value);
  const code = await command();
  for (const spy of spies) spy.mockRestore();
  vi.unstubAllEnvs();
  return { code, output };
}
