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
 * The bucket for the zips of every stage in a region, unless the deployment names another. A writer of this bucket decides what the next deployment
 * deploys, so deployers who are bounded by a service role have their own bucket.
 */
export const defaultCodeBucket = ({ account, region }: Aws, isBounded = false): string =>
  `holdfast-${isBounded ? 'bounded-' : ''}code-${account}-${region}`;

export interface UploadedTemplate {
  /** The URL of the template, with the version of the object if the bucket keeps versions. */
  TemplateURL: string;
  /** The template of the release, with the version of each zip added. */
  text: string;
}

/**
 * Uploads the files that the bucket lacks, and creates the bucket if it is the default one. CloudFormation reads the versions that this
 * call has compared or written, even if another writer replaces an object in between.
 */
export async function upload(
  aws: Aws,
  artifact: Artifact,
  { bucket, prefix }: { bucket: string; prefix: string },
): Promise<UploadedTemplate> {
  await provideBucket(aws, bucket);
  const versions = new Map<string, string | undefined>();
  for (const [name, content] of artifact.zips)
    versions.set(name, await provideObject(aws, { Bucket: bucket, Key: `${prefix}${name}` }, content));
  const text = pinned(artifact, versions);
  const key = `${prefix}template-${createHash('sha256').update(text).digest('hex')}.json`;
  const version = await provideObject(aws, { Bucket: bucket, Key: key }, Buffer.from(text));
  const suffix = aws.partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com';
  const query = version === undefined ? '' : `?versionId=${encodeURIComponent(version)}`;
  return { TemplateURL: `https://s3.${aws.region}.${suffix}/${bucket}/${key}${query}`, text };
}

const pinned = ({ template }: Artifact, versions: Map<string, string | undefined>): string =>
  JSON.stringify(template, (_key, part) => {
    const { 'Fn::Sub': key = '' } = Object(Object(part).S3Key);
    const S3ObjectVersion = versions.get(key.replace(/^\$\{codePrefix\}/, ''));
    return S3ObjectVersion === undefined ? part : { ...part, S3ObjectVersion };
  });

/**
 * @returns whether the bucket for the code exists. Only the default bucket may be missing, because the deployment creates it.
 * @throws Refusal if the bucket cannot be used
 */
export async function hasCodeBucket(aws: Aws, bucket: string): Promise<boolean> {
  const { s3, account } = aws;
  const exists = await s3.send(new HeadBucketCommand({ Bucket: bucket, ExpectedBucketOwner: account })).then(
    () => true,
    ({ $metadata: { httpStatusCode: status } = {} as { httpStatusCode?: number }, message }) => {
      if (status === 404) return false;
      throw new Refusal(
        `the bucket ${bucket} cannot be used for the code: ${status === 403 ? 'access denied' : message}`,
      );
    },
  );
  if (!exists && ![false, true].map((isBounded) => defaultCodeBucket(aws, isBounded)).includes(bucket))
    throw new Refusal(`there is no bucket ${bucket} for the code`);
  return exists;
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

/** What S3 answers if another deployment of the account creates the same bucket at the same time. In us-east-1, S3 then reports success instead. */
const MADE_BY_ANOTHER = new Set(['BucketAlreadyOwnedByYou', 'OperationAborted']);

/** @returns whether this deployment must set the bucket up. False if another deployment was faster, because that one sets it up */
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

/**
 * Puts an object, unless the bucket already has it with the same bytes. The key alone proves nothing: another writer of the bucket could have put
 * other bytes there.
 * @returns the version of the object. Undefined if the bucket does not keep versions
 */
async function provideObject(
  { s3 }: Aws,
  location: { Bucket: string; Key: string },
  content: Buffer,
): Promise<string | undefined> {
  const ChecksumSHA256 = createHash('sha256').update(content).digest('base64');
  // A caller that may only write gets an error here, and then puts the object.
  const storedObject = await s3
    .send(new HeadObjectCommand({ ...location, ChecksumMode: 'ENABLED' }))
    .catch(() => undefined);
  const isSame = storedObject?.ChecksumSHA256 === ChecksumSHA256;
  const { VersionId } = isSame
    ? storedObject
    : await s3.send(new PutObjectCommand({ ...location, Body: content, ChecksumSHA256 }));
  // An object has the version `null` if it was written before the bucket kept versions.
  return VersionId === 'null' ? undefined : VersionId;
}
