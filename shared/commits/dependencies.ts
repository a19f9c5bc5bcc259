import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';

export const PROTOCOLS = ['dynamo', 'native'] as const;
/** `dynamo` excludes writers that use the commit table; `native` is for buckets that only this service writes. */
export type Protocol = (typeof PROTOCOLS)[number];

/** Everything that the commit calls need from outside. */
export interface CommitDependencies {
  dynamodb: DynamoDBClient;
  s3: S3Client;
  clock: Clock;
  ids: Ids;
  table: string;
  bucket: string;
  protocol: Protocol;
  /** How long other writers must leave a record of ours alone, and how long its write may be sent. */
  commitTimeoutMs: number;
  /** How much faster the fastest writer's clock may run than the slowest one's. */
  maxClockSkewRate: number;
  /** How far the service's clocks may stand apart. */
  clockSkewMs: number;
  /** How long a record stays before it may vanish. */
  commitTtlSeconds: number;
  /** A larger upload is refused, when it is announced and when it is committed. */
  maxUploadBytes: number;
  /** A staged object larger than this is copied in parallel parts. */
  multipartThresholdBytes: number;
  /** S3 takes no part below five mebibytes, except for the last one. */
  partBytes: number;
}

/** The dependencies of staging. Its client must not put checksums of the empty body into the URL. */
export type UploadDependencies = Pick<CommitDependencies, 's3' | 'clock' | 'ids' | 'bucket' | 'maxUploadBytes'>;

// The names of the two stores in errors.
export const commitTable = (table: string) => `table ${table}`;
export const commitBucket = (bucket: string) => `bucket ${bucket}`;
