import { text } from 'node:stream/consumers';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import type { Aws } from '../../../deployment/aws.ts';
import type { CloudFormationTemplate } from '../../../infrastructure/cloudformation.ts';
import { listen } from '../../../local/listen.ts';

interface StackDouble {
  id: string;
  status: string;
  parameters: Record<string, string>;
  tags: Record<string, string>;
}

export interface CloudFormationDouble {
  aws: Aws;
  /** By name. A test may put any state here. */
  stacks: Map<string, StackDouble>;
  /** Every action of CloudFormation that came in. */
  actions: string[];
  /** Tables that exist, without a key. */
  tables: Set<string>;
  /** What S3 answers to the creation of the bucket for the code, where another deployment makes it at the same time. */
  race: { answer: string | undefined };
  stop(): Promise<void>;
}

interface ChangeSetDouble extends Pick<StackDouble, 'parameters' | 'tags'> {
  stack: string;
  isSame: boolean;
}

/**
 * A double of exactly those calls that a deployment makes, over the wire: stacks of CloudFormation, whose change sets take
 * effect at once, a bucket that takes everything, and tables. A stack that failed to be created takes no change set, as
 * with CloudFormation.
 * @param template whose parameters have defaults
 */
export async function startCloudFormation({ Parameters = {} }: CloudFormationTemplate): Promise<CloudFormationDouble> {
  const stacks = new Map<string, StackDouble>();
  const changeSets = new Map<string, ChangeSetDouble>();
  const actions: string[] = [];
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
      const parameters = { ...defaults, ...listed(form, 'Parameters', ['ParameterKey', 'ParameterValue']) };
      const tags = listed(form, 'Tags', ['Key', 'Value']);
      const isSame = JSON.stringify([stack?.parameters, stack?.tags]) === JSON.stringify([parameters, tags]);
      changeSets.set(id, { stack: name, parameters, tags, isSame });
      if (isNew) stacks.set(name, { id: idOf(name, made), status: 'REVIEW_IN_PROGRESS', parameters: {}, tags: {} });
      return `<Id>${id}</Id><StackId>${stacks.get(name)?.id}</StackId>`;
    },
    DescribeChangeSet: (of) =>
      changeSets.get(of('ChangeSetName'))?.isSame
        ? `<Status>FAILED</Status><StatusReason>The submitted information didn't contain changes.</StatusReason>`
        : '<Status>CREATE_COMPLETE</Status><Changes/>',
    ExecuteChangeSet: (of) => {
      const { stack: name, parameters, tags } = changeSets.get(of('ChangeSetName')) as ChangeSetDouble;
      const before = stacks.get(name) as StackDouble;
      const status = before.status === 'REVIEW_IN_PROGRESS' ? 'CREATE_COMPLETE' : 'UPDATE_COMPLETE';
      stacks.set(name, { id: before.id, status, parameters, tags });
      return '';
    },
    DescribeStackEvents: () => '<StackEvents/>',
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
    const form = new URLSearchParams(body);
    const action = request.method === 'POST' && form.get('Action');
    if (!action) {
      // S3 has the bucket for the code, no other, and no object.
      if (race.answer && request.method === 'PUT') {
        const fault = `<Error><Code>${race.answer}</Code><Message>another deployment makes it</Message></Error>`;
        race.answer = undefined;
        response.writeHead(409, { 'content-type': 'application/xml' }).end(fault);
        return;
      }
      const isThere = request.method === 'PUT' || /^\/holdfast-code-[^/]*\/?(\?|$)/.test(String(request.url));
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
  const s3 = new S3Client({ ...settings, forcePathStyle: true });
  const place = { account: '111122223333', region: 'eu-west-1', partition: 'aws' };
  return { aws: { cloudFormation, dynamodb, s3, ...place }, stacks, actions, tables, race, stop };
}

export const idOf = (name: string, number: number): string =>
  `arn:aws:cloudformation:eu-west-1:111122223333:stack/${name}/${number}`;

/** CloudFormation takes the name of a stack, or its id. */
const nameOf = (stack: string): string => stack.split('/')[1] ?? stack;

const described = (name: string, { id = '', status = '', parameters = {}, tags = {} }: Partial<StackDouble>) => {
  const members = (all: Record<string, string>, key: string, value: string) =>
    Object.entries(all).map(([one, its]) => `<member><${key}>${one}</${key}><${value}>${its}</${value}></member>`);
  return `<Stacks><member><StackName>${name}</StackName><StackId>${id}</StackId><StackStatus>${status}</StackStatus>
    <Parameters>${members(parameters, 'ParameterKey', 'ParameterValue').join('')}</Parameters>
    <Tags>${members(tags, 'Key', 'Value').join('')}</Tags></member></Stacks>`;
};

function listed(form: URLSearchParams, list: string, [key, value]: [string, string]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 1; form.has(`${list}.member.${at}.${key}`); at += 1)
    found[String(form.get(`${list}.member.${at}.${key}`))] = form.get(`${list}.member.${at}.${value}`) ?? '';
  return found;
}
