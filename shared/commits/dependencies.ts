import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../surroundings/clock.ts';
import type { Ids } from '../surroundings/ids.ts';

export const PROTOCOLS = ['dynamo', 'native'] as const;
/**
 * `dynamo` coordinates all writers that use the commit table. `native` is for buckets that only this service writes.
 */
export type Protocol = (typeof PROTOCOLS)[number];

export interface CommitDependencies {
  dynamodb: DynamoDBClient;
  s3: S3Client;
  clock: Clock;
  ids: Ids;
  table: string;
  bucket: string;
  protocol: Protocol;
  /** How long after its intent a writer may send the write, and how long other clients must leave the record alone. */
  commitTimeoutMs: number;
  /** How much faster the fastest writer's clock may run than the slowest writer's. */
  maxClockSkewRate: number;
  /** The largest difference between two clocks of the service. */
  clockSkewMs: number;
  /** How long a record stays before TTL may delete it. */
  commitTtlSeconds: number;
  /** The largest upload. It is checked when the upload is staged and when it is committed. */
  maxUploadBytes: number;
  /** A larger staged upload is copied in parallel parts. */
  multipartThresholdBytes: number;
  /** The size of each part except for the last. S3 refuses smaller parts than 5 MiB. */
  partBytes: number;
}

/** What staging an upload needs. The S3 client must not sign a checksum of the empty body. */
export type UploadDependencies = Pick<CommitDependencies, 's3' | 'clock' | 'ids' | 'bucket' | 'maxUploadBytes'>;

export const commitTable = (table: string) => `table ${table}`;
export const commitBucket = (bucket: string) => `bucket ${bucket}`;
