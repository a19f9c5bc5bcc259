import { createHash } from 'node:crypto';
import {
  type BucketLocationConstraint,
  CreateBucketCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutBucketPolicyCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  PutPublicAccessBlockCommand,
  waitUntilBucketExists,
} from '@aws-sdk/client-s3';
import type { Artifact } from './artifact.ts';
import type { Aws } from './aws.ts';
import { Refusal } from './failure.ts';

/**
 * The bucket for the zips of every stage in a region, unless the deployment names one. Whoever writes to it decides what the next deployment deploys, so
 * deployers whom a service role bounds have a bucket of their own.
 */
export const defaultCodeBucket = ({ account, region }: Aws, isBounded = false): string =>
  `holdfast-${isBounded ? 'bounded-' : ''}code-${account}-${region}`;

/**
 * Uploads the files that the bucket lacks, and creates the bucket if it is the default one.
 * @returns the URL of the template
 */
export async function upload(
  aws: Aws,
  artifact: Artifact,
  { bucket, prefix }: { bucket: string; prefix: string },
): Promise<string> {
  await provideBucket(aws, bucket);
  for (const [name, content] of artifact.zips) await putOnce(aws, { Bucket: bucket, Key: `${prefix}${name}` }, content);
  const text = Buffer.from(artifact.templateText);
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const key = `${prefix}template-${digest}.json`;
  await putOnce(aws, { Bucket: bucket, Key: key }, text);
  const suffix = aws.partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com';
  return `https://s3.${aws.region}.${suffix}/${bucket}/${key}`;
}

/**
 * @returns whether the bucket for the code exists. The default bucket may be missing, because the deployment makes it.
 * @throws Refusal if the bucket cannot be used
 */
export async function hasCodeBucket(aws: Aws, bucket: string): Promise<boolean> {
  const { s3, account } = aws;
  const there = await s3.send(new HeadBucketCommand({ Bucket: bucket, ExpectedBucketOwner: account })).then(
    () => true,
    ({ $metadata: { httpStatusCode: status } = {} as { httpStatusCode?: number }, message }) => {
      if (status === 404) return false;
      throw new Refusal(
        `the bucket ${bucket} cannot be used for the code: ${status === 403 ? 'access denied' : message}`,
      );
    },
  );
  if (!there && ![false, true].map((isBounded) => defaultCodeBucket(aws, isBounded)).includes(bucket))
    throw new Refusal(`there is no bucket ${bucket} for the code`);
  return there;
}

async function provideBucket(aws: Aws, bucket: string): Promise<void> {
  const { s3, partition } = aws;
  if (await hasCodeBucket(aws, bucket)) return;
  if (!(await createBucket(aws, bucket))) return;
  await s3.send(
    new PutPublicAccessBlockCommand({
      Bucket: bucket,
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
    }),
  );
  // A rollback needs the zips of the former release.
  await s3.send(new PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration: { Status: 'Enabled' } }));
  const arn = `arn:${partition}:s3:::${bucket}`;
  await s3.send(
    new PutBucketPolicyCommand({
      Bucket: bucket,
      Policy: JSON.stringify({
        Version: '2012-10-17',
        Statement: [
          {
            Sid: 'TlsOnly',
            Effect: 'Deny',
            Principal: '*',
            Action: 's3:*',
            Resource: [arn, `${arn}/*`],
            Condition: { Bool: { 'aws:SecureTransport': 'false' } },
          },
        ],
      }),
    }),
  );
}

/** How S3 answers where another deployment of the account makes the same bucket. In us-east-1 it answers as if this one had. */
const MADE_BY_ANOTHER = new Set(['BucketAlreadyOwnedByYou', 'OperationAborted']);

/** @returns whether this deployment is to set it up: not where another one has made it meanwhile, which then does so */
async function createBucket({ s3, account, region }: Aws, bucket: string): Promise<boolean> {
  const elsewhere = region !== 'us-east-1';
  const command = new CreateBucketCommand({
    Bucket: bucket,
    ...(elsewhere && { CreateBucketConfiguration: { LocationConstraint: region as BucketLocationConstraint } }),
  });
  try {
    await s3.send(command);
    return true;
  } catch (error) {
    if (!MADE_BY_ANOTHER.has((error as Error).name)) throw error;
    await waitUntilBucketExists({ client: s3, maxWaitTime: 60 }, { Bucket: bucket, ExpectedBucketOwner: account });
    return false;
  }
}

async function putOnce({ s3 }: Aws, place: { Bucket: string; Key: string }, content: Buffer): Promise<void> {
  const there = await s3.send(new HeadObjectCommand(place)).then(
    ({ ContentLength }) => ContentLength === content.length,
    () => false, // works too where the caller may only write
  );
  if (!there) await s3.send(new PutObjectCommand({ ...place, Body: content, ChecksumAlgorithm: 'SHA256' }));
}
