import { expect, it } from 'vitest';
import * as z from 'zod/mini';
import { readHealth } from '../../functions/contract/health.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { HoldfastError } from '../../shared/errors.ts';
import { lambdaFunction } from '../../shared/lambda/function.ts';
import { NO_NAMES } from '../../shared/lambda/stored-names.ts';
import { httpEvent, throughHttp, throughTask } from '../support/stack/adapters.ts';

const { version } = packageJson;

it('a deployment reports that it answers, and its version, over HTTP and to a task', async () => {
  const handler = readHealth();
  expect(await throughHttp(handler, httpEvent('GET', {}))).toMatchObject({
    status: 200,
    body: { status: 'ok', version },
  });
  expect(await throughTask(handler, {})).toMatchObject({ outcome: 'ok', body: { status: 'ok', version } });
});

it.each([
  ['a success', async () => ({}), 200],
  ['a refusal', async () => Promise.reject(new HoldfastError('Forbidden', 'no')), 403],
  ['a fault', async () => Promise.reject(new Error('broken')), 503],
])('the header holdfast-version is on %s', async (_, run, status) => {
  const handler = lambdaFunction({ name: 'test', input: z.strictObject({}), names: NO_NAMES, run, logged: [] });
  expect(await throughHttp(handler, httpEvent('GET', {}))).toMatchObject({
    status,
    headers: { 'holdfast-version': version },
  });
});

it('the header is on the answer to a request that cannot be read', async () => {
  const answer = await throughHttp(readHealth(), httpEvent('GET', { query: 'a=%' }));
  expect(answer).toMatchObject({ status: 400, headers: { 'holdfast-version': version } });
});
