import { describe, expect, it } from 'vitest';
import { leasesFromEnvironment } from '../../shared/leases/environment.ts';

const TABLES = { LEASES_TABLE: 'leases', WAITERS_TABLE: 'waiters' };

describe('the settings of a function', () => {
  it('that names its tables alone has the defaults', () => {
    expect(leasesFromEnvironment(TABLES)).toMatchObject({
      ...{ table: 'leases', waitersTable: 'waiters', poolsTable: undefined, repairLater: undefined },
      ...{ clockSkewMs: 500, maxWaitSeconds: 20, fenceRetentionSeconds: 3600 },
      executions: { ownAlone: false, stateMachines: '*', service: undefined },
      quotas: { waitersPerKey: 1000, waitersPerNamespace: 10_000, acquireConcurrency: undefined },
    });
  });

  it('are taken where they are given', () => {
    const env = {
      ...{ ...TABLES, POOLS_TABLE: 'pools', CLOCK_SKEW_MS: '7', MAX_WAIT_SECONDS: '8', FENCE_RETENTION_SECONDS: '9' },
      ...{ NAMESPACE_EXECUTIONS: 'own', EXECUTION_STATE_MACHINES: 'jobs-*', SERVICE_NAME: 'holdfast-prod' },
      ...{ MAX_WAITERS_PER_KEY: '10', MAX_WAITERS_PER_NAMESPACE: '11', ACQUIRE_CONCURRENCY: '12' },
    };
    expect(leasesFromEnvironment(env)).toMatchObject({
      ...{ poolsTable: 'pools', clockSkewMs: 7, maxWaitSeconds: 8, fenceRetentionSeconds: 9 },
      executions: { ownAlone: true, stateMachines: 'jobs-*', service: 'holdfast-prod' },
      quotas: { waitersPerKey: 10, waitersPerNamespace: 11, acquireConcurrency: 12 },
    });
  });

  it.each([
    'CLOCK_SKEW_MS',
    'MAX_WAIT_SECONDS',
    'FENCE_RETENTION_SECONDS',
    'MAX_WAITERS_PER_KEY',
    'MAX_WAITERS_PER_NAMESPACE',
    'ACQUIRE_CONCURRENCY',
  ])('are refused by name where they are no numbers: %s', (name) => {
    expect(() => leasesFromEnvironment({ ...TABLES, [name]: 'many' })).toThrow(`${name} must be a whole number`);
  });

  it.each(Object.keys(TABLES))('are refused by name where they are missing: %s', (name) => {
    expect(() => leasesFromEnvironment({ ...TABLES, [name]: undefined })).toThrow(`${name} is not set`);
  });
});
