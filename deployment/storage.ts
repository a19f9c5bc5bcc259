import { DescribeTableCommand, type TableDescription } from '@aws-sdk/client-dynamodb';
import { HeadBucketCommand } from '@aws-sdk/client-s3';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import type { Aws } from './aws.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

const TABLES = ['leasesTable', 'waitersTable', 'commitsTable', 'nameserviceTable'];

/** The index that tells what an execution holds or waits for when it ends. */
const INDEX = 'by-execution';

/** Only this table must have the index. A table of the Rust crate lacks it, and its leases then end only with their ttl (docs/maintenance.md). */
const NEEDS_INDEX = 'waitersTable';

/**
 * A table or bucket that a parameter names must exist, and a table must have the key and the index that the functions use. A table or bucket that a
 * new stack would create must not exist: another deployment may have left it, with the fences of its leases.
 * @throws Refusal that names each fault
 */
export async function checkStorage(
  aws: Aws,
  template: CloudFormationTemplate,
  { values, isNew }: { values: Values; isNew: boolean },
): Promise<void> {
  const named = [...TABLES, 'bucket'].flatMap((parameter) =>
    values[parameter] ? [{ parameter, name: values[parameter] }] : [],
  );
  const made = isNew ? madeBy(aws, template, values) : [];
  const problems = [
    ...named.map(async ({ parameter, name }) => {
      const found = await find(aws, parameter, name);
      if (!found) return [`${parameter}: there is no ${kindOf(parameter)} ${name} in ${aws.region}`];
      if (parameter === 'bucket') return [];
      const { key, indexKey } = keysOf(Object(template.Resources[idOf(parameter)]?.Properties));
      if (found.key !== key) return [`${parameter}: the key of table ${name} is ${found.key}, and must be ${key}`];
      const needsIndex = parameter === NEEDS_INDEX && values.executionEvents !== 'DISABLED';
      return needsIndex && found.indexKey !== indexKey ? [`${parameter}: table ${name} ${lacksIndex(indexKey)}`] : [];
    }),
    ...made.map(async ({ parameter, name }) =>
      (await find(aws, parameter, name))
        ? [`there is a ${kindOf(parameter)} ${name} already: to use it, add --param ${parameter}=${name}`]
        : [],
    ),
  ];
  const found = (await Promise.all(problems)).flat();
  if (found.length > 0) throw new Refusal(found.join('\n'));
}

const lacksIndex = (key: string | undefined) =>
  `lacks the index ${INDEX} with the key ${key}, which Holdfast needs to free what an execution holds when it ends. To add the ` +
  'index, see "An existing table" in docs/maintenance.md. To deploy without it, add --param executionEvents=DISABLED';

const kindOf = (parameter: string) => (parameter === 'bucket' ? 'bucket' : 'table');

const idOf = (parameter: string) => `${parameter[0]?.toUpperCase()}${parameter.slice(1)}`;

/** The key attributes with their types, such as `pk (S), sk (S)`. */
function keyOf({ KeySchema = [], AttributeDefinitions = [] }: Keyed): string {
  const types = new Map(AttributeDefinitions.map(({ AttributeName, AttributeType }) => [AttributeName, AttributeType]));
  const hashFirst = KeySchema.toSorted((one) => (one.KeyType === 'HASH' ? -1 : 1));
  return hashFirst.map(({ AttributeName }) => `${AttributeName} (${types.get(AttributeName)})`).join(', ');
}

type Keyed = Pick<TableDescription, 'KeySchema' | 'AttributeDefinitions'>;

interface Keys {
  /** The key of the table. */
  key?: string;
  /** The key of the index, if the table has it. */
  indexKey?: string;
}

function keysOf(table: Keyed & Pick<TableDescription, 'GlobalSecondaryIndexes'>): Keys {
  const index = table.GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === INDEX);
  return { key: keyOf(table), ...(index && { indexKey: keyOf({ ...table, KeySchema: index.KeySchema }) }) };
}

function madeBy(aws: Aws, template: CloudFormationTemplate, values: Values) {
  const { Resources } = evaluate(template, { ...values, ...pseudoParameters(aws) });
  const ids = {
    ...Object.fromEntries(TABLES.map((parameter) => [idOf(parameter), parameter])),
    Bucket: 'bucket',
  };
  return Object.entries(ids).flatMap(([id, parameter]) => {
    const { TableName, BucketName } = Object(Resources[id]?.Properties);
    const name = TableName ?? BucketName;
    return typeof name === 'string' ? [{ parameter, name }] : [];
  });
}

/** @returns the key of a table, or undefined if there is no such table @throws Refusal if AWS does not say */
export const keyOfTable = async (aws: Aws, name: string): Promise<string | undefined> =>
  (await find(aws, 'table', name))?.key;

/** For each parameter of a table or the bucket, the name that the stack makes up if the parameter is empty. */
export function ownNames(aws: Aws, template: CloudFormationTemplate, stage: string): Values {
  const made = madeBy(aws, template, { stage, codeBucket: '' });
  return Object.fromEntries(made.map(({ parameter, name }) => [parameter, name]));
}

export const pseudoParameters = ({ account, region, partition }: Aws): Values => ({
  'AWS::AccountId': account,
  'AWS::Region': region,
  'AWS::Partition': partition,
});

/** @returns undefined if there is no such table or bucket */
async function find({ dynamodb, s3 }: Aws, parameter: string, name: string): Promise<Keys | undefined> {
  try {
    if (parameter === 'bucket') {
      await s3.send(new HeadBucketCommand({ Bucket: name }));
      return {};
    }
    const { Table = {} } = await dynamodb.send(new DescribeTableCommand({ TableName: name }));
    return keysOf(Table);
  } catch (error) {
    const { name: code, message } = error as Error;
    if (['ResourceNotFoundException', 'NotFound', 'NoSuchBucket'].includes(code)) return undefined;
    throw new Refusal(`${parameter}: cannot check whether there is a ${kindOf(parameter)} ${name}: ${message}`);
  }
}
