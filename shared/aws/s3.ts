import { HeadObjectCommand, type HeadObjectCommandOutput, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { Call } from './call.ts';
import { attempt, reading, toHoldfastError } from './send.ts';

/** How often the SDK sends a request, with the first try. */
const MAX_S3_TRIES = 3;

/**
 * The client of S3 for every function. The SDK takes endpoint, region and credentials from its own environment
 * variables. Each try ends after five seconds, which is long for a megabyte. Copies set a longer time.
 */
export function s3Client(overrides: S3ClientConfig = {}): S3Client {
  return new S3Client({
    maxAttempts: MAX_S3_TRIES,
    // Emulators and private endpoints do not have a host name for each bucket. S3 itself accepts both styles.
    forcePathStyle: Boolean(process.env.AWS_ENDPOINT_URL_S3),
    requestHandler: { connectionTimeout: 1000, requestTimeout: 5000, throwOnRequestTimeout: true },
    ...overrides,
  });
}

interface ObjectLocation {
  bucket: string;
  key: string;
}

/**
 * Sends a HEAD of an object.
 * @returns undefined if there is no object. S3 gives the same answer if the bucket does not exist
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
