import { dynamodbClient } from '../aws/dynamodb.ts';
import { requiredString, wholeNumber } from '../aws/environment.ts';
import { s3Client } from '../aws/s3.ts';
import { systemClock } from '../clock.ts';
import type { Places } from '../expired/source.ts';
import { systemIds } from '../ids.ts';
import type { CleanDependencies, ReportDependencies, ReportStoreDependencies } from './dependencies.ts';
import { announcer } from './events.ts';
import { measurer } from './metrics.ts';

/** Of these many rows with the longest keys, segments hold a few megabytes at once. */
const PAGE_ROWS = 1000;

const HOUR_MS = 3_600_000;

/** DynamoDB itself takes a million; this many are in memory at once. */
const MAX_SEGMENTS = 64;

/** What the deployed report works with. @throws Error naming the variable that is missing or wrong */
export function reportsFromEnvironment(env: NodeJS.ProcessEnv = process.env): ReportDependencies {
  return {
    ...cleaningFromEnvironment(env),
    ids: systemIds,
    segments: segments(env),
    readUnitsPerSecond: wholeNumber('REPORT_READ_UNITS_PER_SECOND', 500, env),
    pageRows: PAGE_ROWS,
    partRows: PAGE_ROWS,
    giveUpAfterMs: wholeNumber('REPORT_GIVE_UP_HOURS', 24, env) * HOUR_MS,
    // 0.1.0 named it otherwise, and an upgrade changes the code of a function before its environment, or after it.
    announce: announcer(requiredString('SERVICE_NAME', { SERVICE_NAME: env.POWERTOOLS_SERVICE_NAME, ...env })),
    measure: measurer(systemClock),
  };
}

/** What the deployed clean-up works with. @throws Error naming the variable that is missing or wrong */
export function cleaningFromEnvironment(env: NodeJS.ProcessEnv = process.env): CleanDependencies {
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

/** What a reader of reports works with. @throws Error naming the variable that is missing or wrong */
export function readingFromEnvironment(env: NodeJS.ProcessEnv = process.env): ReportStoreDependencies {
  return { s3: s3Client(), places: places(env) };
}

function places(env: NodeJS.ProcessEnv): Places {
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
