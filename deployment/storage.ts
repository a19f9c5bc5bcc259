import { DescribeTableCommand } from '@aws-sdk/client-dynamodb';
import { HeadBucketCommand } from '@aws-sdk/client-s3';
import type { CloudFormationTemplate } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import type { Aws } from './aws.ts';
import { Refusal } from './failure.ts';
import type { Values } from './values.ts';

const TABLES = ['leasesTable', 'waitersTable', 'commitsTable', 'nameserviceTable'];

/**
 * A table or bucket that is named must be there, and one that a new stack would make must not be: another deployment
 * may have left it, with the fences of its leases.
 * @throws Refusal that names each
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
    ...named.map(async ({ parameter, name }) =>
      (await exists(aws, parameter, name))
        ? []
        : [`${parameter}: there is no ${kindOf(parameter)} ${name} in ${aws.region}`],
    ),
    ...made.map(async ({ parameter, name }) =>
      (await exists(aws, parameter, name))
        ? [`there is a ${kindOf(parameter)} ${name} already; to deploy over it, add --param ${parameter}=${name}`]
        : [],
    ),
  ];
  const found = (await Promise.all(problems)).flat();
  if (found.length > 0) throw new Refusal(found.join('\n'));
}

const kindOf = (parameter: string) => (parameter === 'bucket' ? 'bucket' : 'table');

function madeBy(aws: Aws, template: CloudFormationTemplate, values: Values) {
  const pseudo = { 'AWS::AccountId': aws.account, 'AWS::Region': aws.region, 'AWS::Partition': aws.partition };
  const { Resources } = evaluate(template, { ...values, ...pseudo });
  const ids = {
    ...Object.fromEntries(TABLES.map((name) => [`${name[0]?.toUpperCase()}${name.slice(1)}`, name])),
    Bucket: 'bucket',
  };
  return Object.entries(ids).flatMap(([id, parameter]) => {
    const { TableName, BucketName } = Object(Resources[id]?.Properties);
    const name = TableName ?? BucketName;
    return typeof name === 'string' ? [{ parameter, name }] : [];
  });
}

async function exists({ dynamodb, s3 }: Aws, parameter: string, name: string): Promise<boolean> {
  const found =
    parameter === 'bucket'
      ? s3.send(new HeadBucketCommand({ Bucket: name }))
      : dynamodb.send(new DescribeTableCommand({ TableName: name }));
  return found.then(
    () => true,
    (error: Error) => {
      if (['ResourceNotFoundException', 'NotFound', 'NoSuchBucket'].includes(error.name)) return false;
      throw new Refusal(
        `${parameter}: AWS does not say whether there is a ${kindOf(parameter)} ${name}: ${error.message}`,
      );
    },
  );
}
