import { dynamodbClient } from '../aws/dynamodb.ts';
import { s3Client } from '../aws/s3.ts';
import { requiredString, wholeNumber } from '../aws/variables.ts';
import { systemClock } from '../surroundings/clock.ts';
import { systemIds } from '../surroundings/ids.ts';
import { announceReport } from './announcement.ts';
import type { CleanDependencies, ReportDependencies, ReportStoreDependencies } from './dependencies.ts';
import { measureReport } from './metrics.ts';
import type { ReportedLocations } from './sources/source.ts';

/** How many rows a page has. Even with the longest keys, all segments together then hold a few megabytes. */
const PAGE_ROWS = 1000;

const HOUR_MS = 3_600_000;

/** The most segments of a table. Each segment takes memory; DynamoDB would accept a million. */
const MAX_SEGMENTS = 64;

/** The dependencies of the deployed report. @throws Error that names a missing or wrong variable */
export function reportsFromEnvironment(
  env: NodeJS.ProcessEnv = process.env,
): Omit<ReportDependencies, 'holders' | 'sources'> {
  return {
    ...cleaningFromEnvironment(env),
    ids: systemIds,
    segments: segments(env),
    readUnitsPerSecond: wholeNumber('REPORT_READ_UNITS_PER_SECOND', 500, env),
    pageRows: PAGE_ROWS,
    partRows: PAGE_ROWS,
    giveUpAfterMs: wholeNumber('REPORT_GIVE_UP_HOURS', 24, env) * HOUR_MS,
    announce: announceReport(requiredString('SERVICE_NAME', env)),
    measure: measureReport(systemClock, wholeNumber('MAX_LEASES_PER_NAMESPACE', 10_000, env)),
  };
}

/** The dependencies of the deployed clean-up. @throws Error that names a missing or wrong variable */
export function cleaningFromEnvironment(
  env: NodeJS.ProcessEnv = process.env,
): Omit<CleanDependencies, 'holders' | 'sources'> {
  return {
    ...readingFromEnvironment(env),
    dynamodb: dynamodbClient(),
    clock: systemClock,
    margins: {
      clockSkewMs: wholeNumber('CLOCK_SKEW_MS', 500, env),
      fenceRetentionSeconds: wholeNumber('FENCE_RETENTION_SECONDS', 3600, env),
      maxClockSkewRate: wholeNumber('MAX_CLOCK_SKEW_RATE', 3, env),
    },
  };
}

/** The dependencies of the deployed call that reads reports. @throws Error that names a missing or wrong variable */
export function readingFromEnvironment(env: NodeJS.ProcessEnv = process.env): ReportStoreDependencies {
  return { s3: s3Client(), locations: locations(env) };
}

function locations(env: NodeJS.ProcessEnv): ReportedLocations {
  return {
    leasesTable: requiredString('LEASES_TABLE', env),
    commitsTable: requiredString('COMMITS_TABLE', env),
    nameserviceTable: requiredString('NAMESERVICE_TABLE', env),
    waitersTable: env.WAITERS_TABLE || undefined,
    bucket: requiredString('BUCKET', env),
  };
}

function segments(env: NodeJS.ProcessEnv): number {
  const value = wholeNumber('REPORT_SEGMENTS', 4, env);
  if (value < 1 || value > MAX_SEGMENTS)
    throw new Error(`REPORT_SEGMENTS must be from 1 to ${MAX_SEGMENTS}, not ${value}`);
  return value;
}
