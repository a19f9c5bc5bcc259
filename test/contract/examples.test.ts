import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { replay, type Step } from '../../contract/examples/replay.ts';
import { SCENARIOS } from '../../contract/examples.ts';
import { ROUTES } from '../../contract/routes.ts';
import { wholeApi } from '../support/worlds/client-worlds.ts';

let stop = async () => {};
afterEach(() => stop());

/** The task that the examples park. */
const TOKEN = 'token-AQCEAAAAKgAAAAM';

/** The examples of in-flight commits begin after a commit whose writer has exited. */
const IN_FLIGHT = {
  ...{ path: { S: 'log/00043.json' }, etag: { S: '*' }, generation: { N: '0' }, timeout: { N: '20000' } },
  ...{ ttl: { N: '9999999999' }, commit_id: { S: 'job-9' } },
};

async function freshApi(): Promise<string> {
  const api = await wholeApi();
  stop = api.stop;
  api.tasks.set(TOKEN, { token: TOKEN, state: 'waiting' });
  await api.commits.putRecord({ ...IN_FLIGHT, written_at: { N: String(Date.now()) } });
  return api.url;
}

async function sent(api: string, { function: name, request }: Step) {
  const { method, path } = ROUTES.find((route) => route.function === name) ?? {};
  const query = method === 'GET' ? `?${new URLSearchParams(request as Record<string, string>)}` : '';
  const body = method === 'POST' ? { body: JSON.stringify(request) } : {};
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${api}${path}${query}`, { method: String(method), headers, ...body });
  const answer = (await response.json()) as { url: string };
  // The next commit takes what was uploaded.
  if (name === 'stageUpload') await fetch(answer.url, { ...answer, body: 'thirteen rows' });
  return { status: response.status, answer };
}

describe('the functions answer the examples of the contract as they are recorded in', () => {
  it.each(Object.keys(SCENARIOS))(
    'the functions answer the examples of contract/examples/%s.json as they are recorded',
    async (name) => {
      const file = resolve(`contract/examples/${name}.json`);
      const api = await freshApi();
      const replayed = await replay(JSON.parse(await readFile(file, 'utf8')), (step) => sent(api, step));
      // With --update, this records the answers.
      await expect(`${JSON.stringify(replayed, null, 2)}\n`).toMatchFileSnapshot(file);
    },
  );
});
