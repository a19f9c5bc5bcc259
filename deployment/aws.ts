import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { Refusal } from './failure.ts';

/** Clients for the account and the region of a deployment. */
export interface Aws {
  cloudFormation: CloudFormationClient;
  dynamodb: DynamoDBClient;
  lambda: LambdaClient;
  s3: S3Client;
  region: string;
  account: string;
  partition: string;
}

/** The options that say where a command works. */
export interface LocationOptions {
  /** Wins over AWS_REGION, AWS_DEFAULT_REGION and the profile. */
  region: string | undefined;
  /** The credentials must be for this account. */
  account?: string | undefined;
}

/** The form of all names of regions, even of future ones. */
const REGION = /^[a-z]{2,}(-[a-z]+)+-\d{1,2}$/;

/** How long it may take to resolve the host name and to connect, in milliseconds. */
const CONNECT_MS = 5000;

/** Errors of a host without an address, as in a region that does not exist, or of one that does not respond. */
const UNREACHABLE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|TimeoutError/;

/** What the SDK says if it finds no credentials. */
const NONE_FOUND = /Could not load credentials from any providers/;

/**
 * Uses the credentials and the region that every AWS SDK would use.
 * @throws Refusal if the region is missing or unknown, if AWS does not answer there or does not accept the credentials, or if the credentials are
 * for another account than `account`
 */
export async function connect(
  { region: given, account: expected }: LocationOptions,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Aws> {
  // Otherwise the SDK prints a warning about this version of Node.js before anything else.
  env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
  const chosen = given ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION);
  if (chosen !== undefined) checkRegion(chosen);
  const patience = { maxAttempts: 2, requestHandler: { connectionTimeout: CONNECT_MS } };
  const sts = new STSClient({ ...(chosen && { region: chosen }), ...patience });
  const region = await sts.config.region().catch(() => {
    throw new Refusal('no region: give --region, set AWS_REGION, or set a region in the profile');
  });
  checkRegion(region);
  const { Account, Arn } = await sts
    .send(new GetCallerIdentityCommand({}))
    .catch((error: Error & { code?: string }) => {
      if (UNREACHABLE.test(`${error.code} ${error.name}`))
        throw new Refusal(`AWS does not answer in region '${region}': is it mistyped? ${error.message}`);
      if (NONE_FOUND.test(error.message))
        throw new Refusal(
          'there are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
        );
      throw new Refusal(`AWS refuses these credentials: ${error.message}`);
    });
  if (!Account || !Arn) throw new Refusal('AWS returned no account for these credentials');
  if (expected !== undefined && expected !== Account)
    throw new Refusal(`these credentials are for account ${Account}, not for account ${expected}. Nothing was changed`);
  const [, partition = 'aws'] = Arn.split(':');
  const settings = { region, maxAttempts: 5 };
  return {
    cloudFormation: new CloudFormationClient(settings),
    dynamodb: new DynamoDBClient(settings),
    // A deployment goes on even if Lambda does not answer, so it should not wait for long.
    lambda: new LambdaClient({ region, ...patience }),
    s3: new S3Client(settings),
    region,
    account: Account,
    partition,
  };
}

function checkRegion(region: string): void {
  if (!REGION.test(region)) throw new Refusal(`there is no region '${region}': a region is written like eu-west-1`);
}

/** How far the clock of this machine may be off: the header `Date` has whole seconds, and the answer takes time. */
const MAX_OFFSET_MS = 5000;

/**
 * The time by the AWS clock, because a fence must not be ahead of it. The clock of the operator's machine may be wrong by hours, and the
 * operator would not notice, because the SDK silently corrects the time of its signatures.
 * @returns epoch milliseconds, rounded down to the second
 * @throws Refusal with both times if the clock of the machine is wrong
 */
export async function timeOfAws({ dynamodb }: Pick<Aws, 'dynamodb'>, table: string): Promise<number> {
  const command = new DescribeTableCommand({ TableName: table });
  let date: string | undefined;
  command.middlewareStack.add(
    (next) => async (args) => {
      const answer = await next(args);
      date = (answer.response as { headers: Record<string, string> }).headers.date;
      return answer;
    },
    { step: 'deserialize', name: 'date' },
  );
  const askedAt = Date.now();
  await dynamodb.send(command);
  const ownTime = (askedAt + Date.now()) / 2;
  const awsTime = Date.parse(date ?? '');
  if (Number.isNaN(awsTime)) throw new Refusal("DynamoDB's answer has no Date, so AWS's time is not known");
  // The header names a second that may just have begun or be almost over.
  if (Math.abs(ownTime - (awsTime + 500)) > MAX_OFFSET_MS)
    throw new Refusal(
      `the clock of this machine is at ${isoSeconds(ownTime)}, and AWS's clock at ${isoSeconds(awsTime)}: set the clock of this machine first`,
    );
  return awsTime;
}

const isoSeconds = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;
