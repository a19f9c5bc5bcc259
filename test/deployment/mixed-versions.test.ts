import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readService } from '../../infrastructure/read.ts';

/** What 0.1.0 set, with its defaults. */
const FIRST_RELEASE = {
  LEASES_TABLE: 'holdfast-prod-leases',
  WAITERS_TABLE: 'holdfast-prod-waiters',
  NAMESERVICE_TABLE: 'holdfast-prod-nameservice',
  POINTER_ATTRIBUTES: 'address',
  COMMITS_TABLE: 'holdfast-prod-commits',
  BUCKET: 'holdfast-prod-123456789012-eu-west-1',
  COMMIT_PROTOCOL: 'dynamo',
  COMMIT_TIMEOUT_MS: '20000',
  MAX_CLOCK_SKEW_RATE: '3',
  COMMIT_TTL_SECONDS: '3600',
  MULTIPART_THRESHOLD_MIB: '256',
  MULTIPART_PART_MIB: '64',
  CLOCK_SKEW_MS: '500',
  FENCE_RETENTION_SECONDS: '3600',
  REPORT_READ_UNITS_PER_SECOND: '500',
  REPORT_SEGMENTS: '4',
  REPORT_GIVE_UP_HOURS: '24',
  AUTO_CLEAN_OLDER_THAN_SECONDS: '86400',
  POWERTOOLS_SERVICE_NAME: 'holdfast-prod',
  POWERTOOLS_METRICS_NAMESPACE: 'Holdfast',
  POWERTOOLS_LOG_LEVEL: 'INFO',
};

/** CloudFormation changes the code and the environment of a function in two calls, and calls arrive in between. */
it('every function starts with the environment of 0.1.0, and counts its calls in the same metrics', async () => {
  const { functions } = await readService();
  // 0.1.0 did not have those of the contract.
  const sources = functions.map(({ source }) => source).filter((source) => !source.includes('contract'));
  expect(sources.length).toBeGreaterThan(15);
  const script = `
    for (const path of ${JSON.stringify(sources)}) {
      const { handler } = await import('./' + path);
      if (typeof handler !== 'function') throw new Error(path);
    }
    const { logLine, count } = await import('./shared/surroundings/log.ts');
    logLine('INFO', { message: 'started' }, { at: 0, dimensions: [[]], values: { Success: count(1) } });
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...FIRST_RELEASE, AWS_REGION: 'eu-west-1' },
  });
  expect(JSON.parse(stdout)).toMatchObject({
    service: 'holdfast-prod',
    Success: 1,
    _aws: { CloudWatchMetrics: [{ Namespace: 'Holdfast' }] },
  });
});
