import { HeadObjectCommand, type HeadObjectCommandOutput, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { Call } from './call.ts';
import { attempt, reading, toHoldfastError } from './send.ts';

/** How often a request is sent before its failure is the answer: the first time, and again. */
const MAX_S3_TRIES = 3;

/**
 * The client of every function. Endpoint, region and credentials come from the SDK's own environment variables.
 * A try is cut after five seconds, which is long for a megabyte; copies are given their own time.
 */
export function s3Client(overrides: S3ClientConfig = {}): S3Client {
  return new S3Client({
    maxAttempts: MAX_S3_TRIES,
    // Emulators and private endpoints have no host name for each bucket; S3 itself takes either style.
    forcePathStyle: Boolean(process.env.AWS_ENDPOINT_URL_S3),
    requestHandler: { connectionTimeout: 1000, requestTimeout: 5000, throwOnRequestTimeout: true },
    ...overrides,
  });
}

/** An object of a bucket. */
interface ObjectLocation {
  bucket: string;
  key: string;
}

/**
 * The object at a key; undefined if there is none. S3 answers the same for a bucket that does not exist.
 * @throws HoldfastError Throttled, Unavailable
 */
export async function headObject(
  s3: S3Client,
  { bucket, key }: ObjectLocation,
  call: Call,
): Promise<HeadObjectCommandOutput | undefined> {
  const command = new HeadObjectCommand({ Bucket: bucket, Key: key });
  const outcome = await attempt(s3, { command }, call);
  if ('output' in outcome) return outcome.output;
  if (outcome.error.$metadata?.httpStatusCode === 404) return undefined;
  throw toHoldfastError(outcome.error, reading(`bucket ${bucket}`), outcome.unanswered);
}
