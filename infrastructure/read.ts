import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';
import { ACCOUNT, PSEUDO_PARAMETERS, REGION } from './logical-ids.ts';
import { defaults } from './parameters.ts';
import { type EventResources, eventResources, type RawEvent, type Trigger, triggers } from './read-events.ts';

const require = createRequire(import.meta.url);
const configuration = 'osls/lib/configuration';
const source = (name: string) => require(`${configuration}/variables/sources/${name}.js`);
const merge = require('osls/lib/utils/merge-plain-objects.js');
/** Merges the files that a section of serverless.yml includes, as the framework does. */
const merged = <T>(parts: T[]): T => parts.reduce((all, part) => merge(all, part), {} as T);

interface ServiceFunction {
  name: string;
  /** The name in AWS, such as holdfast-dev-acquire. */
  deployedName: string;
  /** The file of the handler, such as functions/leases/acquire.ts. */
  source: string;
  /** The folder of the built function, such as dist/leases/acquire. */
  bundle: string;
  timeoutSeconds: number;
  routes: { method: string; path: string }[];
  triggers: Trigger[];
}

export interface TableDefinition {
  definition: CreateTableCommandInput & { TableName: string };
  ttlAttribute: string | undefined;
}

interface ServiceTable extends TableDefinition {
  /** What the table holds, such as leases. */
  kind: string;
}

/** The parts of serverless.yml that the build, the local stack and the tests need. */
export interface Service extends EventResources {
  functions: ServiceFunction[];
  tables: ServiceTable[];
  /** The names of the buckets. */
  buckets: string[];
  /** One environment for all functions, because none of them gives a variable another value. */
  environment: Record<string, string>;
}

/** Reads serverless.yml and its includes with the framework's own reader. */
export async function readService(stage = 'local'): Promise<Service> {
  const serviceDir = join(import.meta.dirname, '..');
  const service = await require(`${configuration}/read.js`)(join(serviceDir, 'serverless.yml'));
  // The framework does not resolve the include of the parameters here, and would take it for an empty set.
  service.params = { default: defaults() };
  const options = { stage };
  await require(`${configuration}/variables/index.js`)({
    serviceDir,
    configuration: service,
    options,
    sources: {
      env: source('env'),
      file: source('file'),
      opt: source('opt'),
      self: source('self'),
      sls: source('instance-dependent/get-sls')(),
      param: source('instance-dependent/param')({ configurationInput: service, processedInput: { options } }),
    },
  });
  const functions = merged<Record<string, RawFunction>>(service.functions);
  const { Resources = {} } = merged<{ Resources?: Record<string, RawResource> }>(service.resources);
  const deployed = (name: string) => `${service.service}-${stage}-${name}`;
  const strings = (values: object) => Object.fromEntries(Object.entries(values).map(([k, v]) => [k, plain(v)]));
  return {
    functions: Object.entries(functions).map(([name, raw]) => ({
      name,
      deployedName: deployed(name),
      source: raw.handler.replace(/^dist\/(.*)\/index\.handler$/, 'functions/$1.ts'),
      bundle: raw.handler.replace(/\/index\.handler$/, ''),
      timeoutSeconds: raw.timeout ?? service.provider.timeout,
      routes: (raw.events ?? []).flatMap(({ httpApi }) =>
        httpApi ? [{ method: httpApi.method, path: httpApi.path }] : [],
      ),
      triggers: (raw.events ?? []).flatMap(triggers),
    })),
    tables: Object.entries(Resources)
      .filter(([, { Type }]) => Type === 'AWS::DynamoDB::Table')
      .map(([id, { Properties }]) => ({ kind: id.replace(/Table$/, '').toLowerCase(), ...table(Properties) })),
    buckets: Object.values(Resources)
      .filter(({ Type }) => Type === 'AWS::S3::Bucket')
      .map(({ Properties }) => plain(Properties.BucketName)),
    environment: strings(
      Object.assign({}, service.provider.environment, ...Object.values(functions).map((raw) => raw.environment)),
    ),
    ...eventResources(Resources, deployed, functions),
  };
}

interface RawFunction {
  handler: string;
  timeout?: number;
  environment?: Record<string, unknown>;
  events?: ({ httpApi?: { method: string; path: string } } & RawEvent)[];
}

interface RawResource {
  Type: string;
  Properties: CreateTableCommandInput & {
    TableName: string;
    TimeToLiveSpecification?: { AttributeName: string };
    BucketName?: unknown;
  };
}

/** The value of a reference in the local stack. The URL of a queue ends in its logical id there. */
function plain(value: unknown): string {
  const { 'Fn::Sub': template, Ref } = Object(value) as { 'Fn::Sub'?: string; Ref?: string };
  if (Ref !== undefined && Ref in PSEUDO_PARAMETERS) return String(PSEUDO_PARAMETERS[Ref]);
  if (Ref !== undefined) return `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/${Ref}`;
  return template?.replaceAll(/\$\{(.+?)\}/g, (found, name) => PSEUDO_PARAMETERS[name] ?? found) ?? String(value);
}

export const renamed = ({ definition, ttlAttribute }: TableDefinition, TableName: string): TableDefinition => ({
  definition: { ...definition, TableName },
  ttlAttribute,
});

function table(properties: RawResource['Properties']): TableDefinition {
  const { TableName, BillingMode, AttributeDefinitions, KeySchema, GlobalSecondaryIndexes } = properties;
  return {
    definition: {
      TableName,
      BillingMode,
      AttributeDefinitions,
      KeySchema,
      ...(GlobalSecondaryIndexes && { GlobalSecondaryIndexes }),
    },
    ttlAttribute: properties.TimeToLiveSpecification?.AttributeName,
  };
}
