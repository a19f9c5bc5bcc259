import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, vi } from 'vitest';
import { leasesFromEnvironment } from '../../shared/locks/dependencies.ts';
import { call } from '../support/emulators/aws.ts';

const TABLES = { LEASES_TABLE: 'leases', WAITERS_TABLE: 'waiters' };

it('a function that names only its tables has the default settings', () => {
  expect(leasesFromEnvironment(TABLES)).toMatchObject({
    ...{ table: 'leases', waitersTable: 'waiters', repairLater: undefined },
    ...{ clockSkewMs: 500, maxWaitSeconds: 20, fenceRetentionSeconds: 3600 },
    executions: { onlyOwn: false, stateMachines: '*', service: undefined },
    quotas: { waitersPerKey: 10_000, waitersPerNamespace: 100_000, maxHeldCalls: 100 },
  });
});

it('settings of a function are taken if they are given', () => {
  const env = {
    ...{ ...TABLES, CLOCK_SKEW_MS: '7', MAX_WAIT_SECONDS: '8', FENCE_RETENTION_SECONDS: '9' },
    ...{ NAMESPACE_EXECUTIONS: 'own', EXECUTION_STATE_MACHINES: 'jobs-*', SERVICE_NAME: 'holdfast-prod' },
    ...{ MAX_WAITERS_PER_KEY: '10', MAX_WAITERS_PER_NAMESPACE: '11', MAX_HELD_CALLS: '12' },
  };
  expect(leasesFromEnvironment(env)).toMatchObject({
    ...{ clockSkewMs: 7, maxWaitSeconds: 8, fenceRetentionSeconds: 9 },
    executions: { onlyOwn: true, stateMachines: 'jobs-*', service: 'holdfast-prod' },
    quotas: { waitersPerKey: 10, waitersPerNamespace: 11, maxHeldCalls: 12 },
  });
});

it.each([
  'CLOCK_SKEW_MS',
  'MAX_WAIT_SECONDS',
  'FENCE_RETENTION_SECONDS',
  'MAX_WAITERS_PER_KEY',
  'MAX_WAITERS_PER_NAMESPACE',
  'MAX_HELD_CALLS',
])('settings of a function are refused by name if they are not numbers: %s', (name) => {
  expect(() => leasesFromEnvironment({ ...TABLES, [name]: 'many' })).toThrow(`${name} must be a whole number`);
});

it.each(Object.keys(TABLES))('settings of a function are refused by name if they are missing: %s', (name) => {
  expect(() => leasesFromEnvironment({ ...TABLES, [name]: undefined })).toThrow(`${name} is not set`);
});

it('settings of a function name the queue, at the endpoint of SQS', async () => {
  const messages: unknown[] = [];
  const server = createServer(async (request, response) => {
    messages.push(JSON.parse(await text(request)));
    response.setHeader('content-type', 'application/x-amz-json-1.0').end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  vi.stubEnv('AWS_ENDPOINT_URL_SQS', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const url = 'https://sqs.us-east-1.amazonaws.com/123456789012/repair';
  const { repairLater } = leasesFromEnvironment({ ...TABLES, REPAIR_QUEUE_URL: url });
  await repairLater?.({ key: 'job', delaySeconds: 7 }, call()).finally(() => {
    vi.unstubAllEnvs();
    server.close();
  });
  expect(messages).toEqual([{ QueueUrl: url, MessageBody: '{"key":"job"}', DelaySeconds: 7 }]);
});
