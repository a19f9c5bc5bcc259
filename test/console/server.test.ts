import { request } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { type ConsoleOptions, startConsole } from '../../cli/src/console/server.ts';
import { httpTransport } from '../../clients/typescript/src/http.ts';
import type { Transport } from '../../clients/typescript/src/transport.ts';
import { listen } from '../../local/listen.ts';

const TOKEN = 'the-token-of-this-test';

/** What the console sent to the API. */
const sent: { method: string | undefined; url: string | undefined; authorization: string | undefined; body: string }[] =
  [];
/** The answers of the API, one for each call. After them it answers with an empty page. */
const answers: { status: number; body: object }[] = [];

const api = await listen(async (incoming, outgoing) => {
  let body = '';
  for await (const chunk of incoming) body += chunk;
  const { method, url, headers } = incoming;
  sent.push({ method, url, authorization: headers.authorization, body });
  const answer = answers.shift() ?? { status: 200, body: { leases: [], nextCursor: null } };
  outgoing.writeHead(answer.status, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify(answer.body));
});
const credentials = () => ({ accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' });
const transport = httpTransport({ endpoint: api.url, credentials, region: 'eu-west-1' }, () => Date.now());

const running: { stop(): Promise<void> }[] = [api];
afterAll(() => Promise.all(running.map((one) => one.stop())));

async function started(options: Partial<ConsoleOptions> = {}) {
  const base = { endpoint: api.url, local: false, write: false, token: TOKEN, port: 0, transport };
  const site = await startConsole({ ...base, ...options });
  running.push(site);
  return site.url;
}

const reader = await started();
const writer = await started({ write: true });

/** Sends a request with headers that `fetch` does not allow. */
function raw(url: string, path: string, headers: Record<string, string>, method = 'GET', body = '') {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const outgoing = request(`${url}${path}`, { method, headers }, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const token = { 'x-holdfast-token': TOKEN };
const json = { ...token, 'content-type': 'application/json' };

describe('holdfast console', () => {
  it('holdfast console sends each call of the page to its namespace', async () => {
    const url = await started({ namespace: 'team-a', write: true });
    const before = sent.length;
    expect((await raw(url, '/v1/leases?state=held', token)).status).toBe(200);
    await raw(url, '/v1/leases/break', json, 'POST', '{"key":"k","fence":1}');
    expect(sent.slice(before).map((one) => `${one.method} ${one.url}`)).toEqual([
      'GET /v1/ns/team-a/leases?state=held',
      'POST /v1/ns/team-a/leases/break',
    ]);
    // A manipulated page cannot reach another namespace.
    expect((await raw(url, '/v1/ns/team-b/leases', token)).status).toBe(404);
    expect(sent).toHaveLength(before + 2);
    expect(JSON.parse((await raw(url, '/console/settings', token)).body)).toMatchObject({ namespace: 'team-a' });
  });

  it('holdfast console serves only its own script, and data only with the token', async () => {
    const page = await raw(reader, '/', {});
    expect([page.status, page.body]).toEqual([
      200,
      expect.stringContaining('<script type="module" src="/console/page.js">'),
    ]);
    expect(page.headers['content-security-policy']).toContain("script-src 'self'");
    expect(page.body).not.toMatch(/<script>|\s(style|on\w+)=/);
    const script = await raw(reader, '/console/page.js', {});
    expect([script.status, script.headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8']);
    const before = sent.length;
    for (const headers of [{}, { 'x-holdfast-token': 'x' }, { 'x-holdfast-token': `${TOKEN}x` }])
      for (const path of ['/v1/leases', '/console/settings'])
        expect((await raw(writer, path, headers as Record<string, string>)).status, path).toBe(401);
    expect(sent).toHaveLength(before);
  });

  it.each([
    ['another Origin', { origin: 'https://evil.example' }],
    ['the Origin of another port', { origin: 'http://127.0.0.1:1' }],
    ['an Origin without a name', { origin: 'null' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another Host', { host: 'evil.example' }],
    ['a Host that resolves here', { host: 'rebound.example:80' }],
  ])('holdfast console refuses %s, with the token and without', async (_, headers) => {
    const before = sent.length;
    for (const more of [{}, token])
      for (const path of ['/', '/console/page.js', '/v1/leases'])
        expect((await raw(writer, path, { ...headers, ...more } as Record<string, string>)).status, path).toBe(403);
    expect(sent).toHaveLength(before);
  });

  it('holdfast console keeps a connection open between the calls of the page', async () => {
    const { headers } = await raw(reader, '/console/settings', token);
    const [, seconds] = /^timeout=(\d+)$/.exec(String(headers['keep-alive'])) ?? [];
    // The page polls every five seconds. A call on a connection that is just closing would be lost.
    expect(Number(seconds)).toBeGreaterThan(10);
  });

  it('holdfast console signs each call with the credentials of the operator', async () => {
    const answer = await raw(reader, '/v1/leases?key=a+b%2Fc*&waiters=true', token);
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { leases: [], nextCursor: null }]);
    const { method, url, authorization } = sent.at(-1) ?? {};
    expect([method, url]).toEqual(['GET', '/v1/leases?key=a%20b%2Fc%2A&waiters=true']);
    expect(authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/execute-api\/aws4_request/,
    );
  });

  it('holdfast console changes records only if started to, and only as the page needs', async () => {
    const before = sent.length;
    const body = JSON.stringify({ key: 'k', fence: 1 });
    expect(JSON.parse((await raw(reader, '/console/settings', token)).body)).toMatchObject({ write: false });
    const refused = await raw(reader, '/v1/leases/break', json, 'POST', body);
    expect([refused.status, refused.body]).toEqual([403, expect.stringContaining('--write')]);
    for (const path of [
      '/v1/leases/acquire',
      '/v1/leases/release',
      '/v1/commits',
      '/v1/commits/reset-fence',
      '/v1/nameservice/publish',
    ])
      expect((await raw(writer, path, json, 'POST', body)).status, path).toBe(404);
    expect((await raw(writer, '/v1/other', token)).status).toBe(404);
    for (const bad of ['', 'no JSON', '[]', `"${'x'.repeat(70_000)}"`])
      expect((await raw(writer, '/v1/leases/break', json, 'POST', bad)).status).toBe(400);
    expect(sent).toHaveLength(before);
    expect((await raw(writer, '/v1/leases/break', json, 'POST', body)).status).toBe(200);
    expect(sent.at(-1)).toMatchObject({ method: 'POST', url: '/v1/leases/break', body });
    for (const path of ['/v1/leases/cap', '/v1/leases/next', '/v1/leases/cancel']) {
      expect((await raw(reader, path, json, 'POST', body)).status, path).toBe(403);
      expect((await raw(writer, path, json, 'POST', body)).status, path).toBe(200);
    }
  });

  it('holdfast console passes on answers of the service, and marks its own refusals', async () => {
    const problem = {
      type: 'urn:holdfast:error:Conflict',
      code: 'Conflict',
      detail: 'the fence',
      status: 409,
      key: 'k',
    };
    answers.push({ status: 409, body: problem });
    const conflict = await raw(writer, '/v1/leases/break', json, 'POST', '{"key":"k","fence":1}');
    expect([conflict.status, JSON.parse(conflict.body)]).toEqual([
      409,
      expect.objectContaining({ code: 'Conflict', key: 'k' }),
    ]);
    answers.push({ status: 403, body: { message: 'Forbidden' } });
    const forbidden = await raw(reader, '/v1/leases', token);
    expect([forbidden.status, JSON.parse(forbidden.body)]).toEqual([
      403,
      expect.objectContaining({ detail: expect.stringMatching(/^Forbidden \(http:/) }),
    ]);
    answers.push({ status: 401, body: { message: 'Unauthorized' } });
    const expired = await raw(reader, '/v1/leases', token);
    expect([expired.status, expired.body]).toEqual([403, expect.stringContaining('credentials are not accepted')]);
  });

  it('holdfast console ends a call to the service when the page disconnects', async () => {
    let signal: AbortSignal | undefined;
    const waits: Transport = (_operation, _payload, own) => {
      signal = own;
      return new Promise(() => {});
    };
    const closed = request(`${await started({ transport: waits })}/v1/leases`, { headers: token });
    closed.on('error', () => {}); // this test closes it
    closed.end();
    await expect.poll(() => signal?.aborted).toBe(false);
    closed.destroy();
    await expect.poll(() => signal?.aborted, { timeout: 10_000 }).toBe(true);
  });

  it('holdfast console says if the service is unreachable, or if credentials are missing', async () => {
    const gone = httpTransport({ endpoint: 'http://127.0.0.1:9' }, () => Date.now());
    const answer = await raw(await started({ transport: gone }), '/v1/leases', token);
    expect([answer.status, answer.body]).toEqual([
      502,
      expect.stringContaining('the connection to http://127.0.0.1:9 failed'),
    ]);
    const keyless = await started({
      transport: async () => {
        throw new Error('no credentials: log in');
      },
    });
    const without = await raw(keyless, '/v1/leases', token);
    expect([without.status, without.body]).toEqual([502, expect.stringContaining('no credentials: log in')]);
  });
});
