import { dynamodbClient } from '../aws/dynamodb.ts';
import { s3Client } from '../aws/s3.ts';
import { requiredString, wholeNumber } from '../aws/variables.ts';
import { systemClock } from '../surroundings/clock.ts';
import { systemIds } from '../surroundings/ids.ts';
import { type CommitDependencies, PROTOCOLS, type Protocol, type UploadDependencies } from './dependencies.ts';

const MIB = 1024 ** 2;

/** The smallest part that S3 accepts, and the smallest object that S3 copies in ranges. */
const MIN_PART_MIB = 5;

/** The most that S3 accepts in one PUT, or copies in one request. */
const MAX_PUT_MIB = 5120;

/**
 * How much longer than its timeout a record stays. If it vanished earlier, a client could create a new record and write
 * at the same time.
 */
const TTL_MARGIN_SECONDS = 60;

/** The dependencies of a deployed function of commits. @throws Error naming the variable that is missing or wrong */
export function commitsFromEnvironment(env: NodeJS.ProcessEnv = process.env): CommitDependencies {
  const commitTimeoutMs = atLeast('COMMIT_TIMEOUT_MS', { min: 1000, fallback: 20_000 }, env);
  const maxClockSkewRate = atLeast('MAX_CLOCK_SKEW_RATE', { min: 1, fallback: 3 }, env);
  const minTtlSeconds = Math.ceil((commitTimeoutMs * maxClockSkewRate) / 1000) + TTL_MARGIN_SECONDS;
  return {
    dynamodb: dynamodbClient(),
    s3: s3Client(),
    clock: systemClock,
    ids: systemIds,
    table: requiredString('COMMITS_TABLE', env),
    bucket: requiredString('BUCKET', env),
    protocol: protocol(env),
    commitTimeoutMs,
    maxClockSkewRate,
    clockSkewMs: wholeNumber('CLOCK_SKEW_MS', 500, env),
    commitTtlSeconds: atLeast('COMMIT_TTL_SECONDS', { min: minTtlSeconds, fallback: 3600 }, env),
    maxUploadBytes: maxUploadBytes(env),
    multipartThresholdBytes: atLeast('MULTIPART_THRESHOLD_MIB', { min: MIN_PART_MIB, fallback: 256 }, env) * MIB,
    partBytes: atLeast('MULTIPART_PART_MIB', { min: MIN_PART_MIB, fallback: 64 }, env) * MIB,
  };
}

/** The dependencies of the deployed staging. @throws Error naming the variable that is missing or wrong */
export function uploadsFromEnvironment(env: NodeJS.ProcessEnv = process.env): UploadDependencies {
  return {
    // Without this option the SDK would sign the checksum of an empty body, and S3 would refuse every upload that is
    // not empty.
    s3: s3Client({ requestChecksumCalculation: 'WHEN_REQUIRED' }),
    clock: systemClock,
    ids: systemIds,
    bucket: requiredString('BUCKET', env),
    maxUploadBytes: maxUploadBytes(env),
  };
}

function maxUploadBytes(env: NodeJS.ProcessEnv): number {
  const value = atLeast('MAX_UPLOAD_MIB', { min: 1, fallback: 1024 }, env);
  if (value > MAX_PUT_MIB) throw new Error(`MAX_UPLOAD_MIB must be at most ${MAX_PUT_MIB}, not ${value}`);
  return value * MIB;
}

function atLeast(name: string, { min, fallback }: { min: number; fallback: number }, env: NodeJS.ProcessEnv): number {
  const value = wholeNumber(name, fallback, env);
  if (value < min) throw new Error(`${name} must be at least ${min}, not ${value}`);
  return value;
}

function protocol(env: NodeJS.ProcessEnv): Protocol {
  const value = env.COMMIT_PROTOCOL ?? 'dynamo';
  const known = PROTOCOLS.find((name) => name === value);
  if (!known) throw new Error(`COMMIT_PROTOCOL must be one of ${PROTOCOLS.join(', ')}, not '${value}'`);
  return known;
}
