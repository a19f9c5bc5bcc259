import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { startGateway } from '../../local/gateway.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startApi } from '../support/stack/api.ts';
import { rounds } from '../support/time/rounds.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const { handlers } = await leaseWorld({ clock: systemClock });
const { url, stop } = await startApi(handlers);
afterAll(stop);
afterEach(() => void vi.useRealTimers());

type Body = Record<string, unknown> & { fence: number; leaseId: string };

async function post(path: string, payload: object) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(payload),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

describe('leases over HTTP', () => {
  it('a lease over HTTP goes to one of 64 callers, with rising fences', async () => {
    let previous = 0;
    for (let round = 0; round < rounds(50, 2); round++) {
      const contenders = Array.from({ length: 64 }, (_, index) =>
        post('/v1/leases/acquire', { key: 'contended', holder: `caller-${index}` }),
      );
      const answers = await Promise.all(contenders);
      const [granted, ...more] = answers.filter(({ status }) => status === 201);
      expect(more).toEqual([]);
      if (!granted) throw new Error('nobody was granted the lease');
      const { holder, fence, leaseId } = granted.body;
      expect(fence).toBeGreaterThan(previous);
      previous = fence;
      const refused = answers.filter((answer) => answer !== granted);
      for (const { status, body } of refused) {
        expect(status).toBe(409);
        expect(body).toMatchObject({ code: 'LeaseHeld', holder });
        // Others may have seen the fence of a late grant before it was raised.
        expect(body.fence).toBeLessThanOrEqual(fence);
      }
      expect((await post('/v1/leases/release', { key: 'contended', leaseId })).body.released).toBe(true);
    }
  }, 90_000);

  it('a lease over HTTP is handed off from one waiting caller to the next', async () => {
    const take = (holder: string) => post('/v1/leases/acquire', { key: 'relay', holder, waitSeconds: 20 });
    const release = ({ body }: Awaited<ReturnType<typeof take>>) =>
      post('/v1/leases/release', { key: 'relay', leaseId: body.leaseId });
    const fences: number[] = [];
    await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const grant = await take(`runner-${index}`);
        expect(grant.status).toBe(201);
        fences.push(grant.body.fence);
        await release(grant);
      }),
    );
    expect(fences).toEqual([...fences].sort((a, b) => a - b));
    expect(new Set(fences).size).toBe(8);
  });

  it('the local gateway serves every lease route of serverless.yml', async () => {
    const { body: grant } = await post('/v1/leases/acquire', { key: 'tour/1', holder: 'me' });
    expect((await post('/v1/leases/heartbeat', { key: 'tour/1', leaseId: grant.leaseId })).status).toBe(200);
    const one = await fetch(`${url}/v1/leases?key=tour%2F1`);
    expect([one.status, ((await one.json()) as Body).state]).toEqual([200, 'held']);
    const list = await fetch(`${url}/v1/leases?prefix=tour/&state=held&limit=10`);
    expect(((await list.json()) as Body).leases).toHaveLength(1);
    expect((await post('/v1/leases/break', { key: 'tour/1', fence: grant.fence })).body.broken).toBe(true);
    expect((await post('/v1/leases/release', { key: 'tour/1', leaseId: grant.leaseId })).body.reason).toBe('broken');
  });
});

/** A function that answers with the event that it was given. */
const ECHO = {
  method: 'GET',
  name: 'echo',
  timeoutSeconds: 5,
  handler: async (event: unknown) => ({ statusCode: 200, body: JSON.stringify(event) }),
};

describe('the local gateway', () => {
  it('the local gateway answers 404 to any other route or method', async () => {
    expect((await post('/v1/other', {})).status).toBe(404);
    expect((await fetch(`${url}/v1/leases/acquire`)).status).toBe(404);
  });

  it('the local gateway answers 404 if any segment of the path is empty', async () => {
    const local = await startGateway([{ ...ECHO, path: '/v1/ns/{ns}/leases' }], 0);
    expect((await fetch(`${local.url}/v1/ns/team-a/leases`)).status).toBe(200);
    expect((await fetch(`${local.url}/v1/ns//leases`)).status).toBe(404);
    await local.stop();
  });

  it('the local gateway passes on the whole query, with each question mark in it', async () => {
    const local = await startGateway([{ ...ECHO, path: '/v1/leases' }], 0);
    const answer = await fetch(`${local.url}/v1/leases?key=a?b&prefix=?`);
    expect(await answer.json()).toMatchObject({ rawPath: '/v1/leases', rawQueryString: 'key=a?b&prefix=?' });
    await local.stop();
  });

  it('the local gateway answers 503 after 30 seconds, while the function continues', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const called = vi.fn(() => new Promise(() => {}));
    const local = await startGateway([{ ...ECHO, path: '/slow', timeoutSeconds: 60, handler: called }], 0);
    const answer = fetch(`${local.url}/slow`);
    await vi.waitFor(() => expect(called).toHaveBeenCalled());
    const first = Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 29_999, 'none yet'))]);
    vi.advanceTimersByTime(29_999);
    expect(await first).toBe('none yet');
    vi.advanceTimersByTime(1);
    const { status, body } = await answer.then(async (late) => ({ status: late.status, body: await late.json() }));
    expect({ status, body }).toEqual({ status: 503, body: { message: 'Service Unavailable' } });
    await local.stop();
  });

  it('the local gateway refuses a body larger than Lambda takes', async () => {
    expect((await post('/v1/leases/acquire', { key: 'x'.repeat(6 * 1024 * 1024) })).status).toBe(413);
  });

  it('the local gateway answers a timeout and a crash as the platform does', async () => {
    const never: LambdaHandler = () => new Promise(() => {});
    const crash: LambdaHandler = async () => {
      throw new Error('crash');
    };
    const local = await startGateway(
      [
        { method: 'POST', path: '/never', name: 'never', timeoutSeconds: 0.05, handler: never },
        { method: 'POST', path: '/crash', name: 'crash', timeoutSeconds: 1, handler: crash },
      ],
      0,
    );
    const complaints: unknown[] = [];
    const { error } = console;
    console.error = (line) => complaints.push(line);
    for (const path of ['/never', '/crash'])
      expect((await fetch(`${local.url}${path}`, { method: 'POST' })).status).toBe(500);
    console.error = error;
    expect(complaints).toEqual([
      expect.stringMatching(/^POST \/never: .*: Task timed out after 0.05 seconds$/),
      'POST /crash: Error: crash',
    ]);
    await local.stop();
  });
});
