import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aFew } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

let keys = 0;
const freshKey = () => `break/${++keys}`;
const env = { HOLDFAST_ENDPOINT: api.url };
const call = (...args: string[]) => cli.call(args, { env });
const lines = (text: string) => text.trimEnd().split('\n');

const KINDS: [name: string, options: { limit?: number }][] = [
  ['lease', {}],
  ['permit', { limit: 3 }],
];

describe.each(KINDS)('holdfast break of a %s', (_, options) => {
  const acquire = (key: string, ttlSeconds = 600) => holdfast.acquire(key, { ttlSeconds, ...options });
  const broken = (key: string, fence: number, ...more: string[]) =>
    call('break', key, '--fence', String(fence), ...more);

  it('holdfast break lets the holder work until its release, and says until when', async () => {
    const key = freshKey();
    await using lease = await acquire(key);
    const { code, stdout } = await broken(key, lease.fence);
    expect(code).toBe(0);
    expect(lines(stdout)).toEqual([
      `the grant of ${key} with the fence ${lease.fence} is ending`,
      expect.stringMatching(
        /^no heartbeat has come since the grant: unless one comes, the other may work until \S+Z \(in (9m \d+s|10m)\)$/,
      ),
    ]);
    expect((await call('queue', key)).stdout).toMatch(/\bending\b/);
    const json = JSON.parse((await broken(key, lease.fence, '--json')).stdout);
    expect(json).toEqual({
      ...{ key, broken: true, fence: lease.fence, holder: 'the other', ended: false },
      ...{ holderUntil: lease.expiresAt, lastHeartbeatAt: null },
    });
    expect(await lease.release()).toBe(true);
    await using next = await acquire(key);
    expect(next.fence).toBeGreaterThan(lease.fence);
  });

  it('holdfast break names the last heartbeat, because the holder stops at the next one', async () => {
    const key = freshKey();
    await using lease = await acquire(key);
    await holdfast.heartbeat({ key, leaseId: lease.leaseId });
    const { stdout } = await broken(key, lease.fence);
    expect(stdout).toMatch(
      /\nthe other stops at its next heartbeat \(the last came \d+s ago\), and then releases the key; at the latest, the grant ends at \S+Z \(in (9m \d+s|10m)\)\n$/,
    );
  });

  it('holdfast break --now frees the key, and says how long the holder may work', async () => {
    const key = freshKey();
    await using lease = await acquire(key);
    await holdfast.heartbeat({ key, leaseId: lease.leaseId });
    const { code, stdout } = await broken(key, lease.fence, '--now');
    expect(code).toBe(0);
    expect(lines(stdout)).toEqual([
      `the grant of the other on ${key}, with the fence ${lease.fence}, is broken`,
      expect.stringMatching(
        /^the other may work on until \S+Z \(in (9m \d+s|10m)\), or its next heartbeat \(the last came \d+s ago\), beside the next holder$/,
      ),
    ]);
    await using next = await acquire(key);
    expect(next.fence).toBeGreaterThan(lease.fence);
  });

  it('holdfast break with a stale fence prints the command that ends the grant', async () => {
    const key = freshKey();
    await using lease = await acquire(key);
    const stale = await broken(key, lease.fence - 1, '--now');
    const ending = [key, '--fence', String(lease.fence), '--now'].join(' ');
    expect([stale.code, stale.stdout]).toEqual([1, '']);
    expect(lines(stale.stderr).slice(1)).toEqual([
      expect.stringMatching(
        new RegExp(`^holdfast: ${key} is held by the other since \\S+Z until \\S+Z, with the fence ${lease.fence}$`),
      ),
      `holdfast: to end it: holdfast break ${ending}`,
    ]);
    const { code, stdout } = await broken(key, lease.fence - 1, '--json');
    const actual = { holder: 'the other', fence: lease.fence, expiresAt: lease.expiresAt };
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ key, actual: { ...actual, holders: [actual] } });
    expect((await call('break', ...ending.split(' '))).code).toBe(0);
    const gone = await broken(key, lease.fence - 1);
    expect(gone.stderr).toContain(`no caller holds ${key}`);
  });

  it('holdfast break without a fence only prints the command that ends the grant', async () => {
    const key = `${freshKey()} it's`;
    await using lease = await acquire(key);
    const { code, stdout, stderr } = await call('break', key, '--endpoint', api.url);
    expect([code, stdout]).toEqual([64, '']);
    const ending = `'break/${keys} it'\\''s' --fence ${lease.fence} --endpoint ${api.url}`;
    expect(lines(stderr)).toEqual([
      'holdfast: --fence is missing: break ends the lease that you saw',
      expect.stringContaining(`${key} is held by the other since `),
      `holdfast: to end it: holdfast break ${ending}`,
      'holdfast: see holdfast break --help',
    ]);
    expect(lease.held).toBe(true);
    expect((await holdfast.heartbeat({ key, leaseId: lease.leaseId })).fence).toBe(lease.fence);
  });
});

it('holdfast break prints a command that works for a key with a leading hyphen', async () => {
  const key = `-${freshKey()}`;
  await using lease = await holdfast.acquire(key, { holder: 'first\nto end it: all' });
  const { stderr } = await call('break', '--', key);
  const ending = `--fence ${lease.fence} -- ${key}`;
  expect(stderr).toMatch(new RegExp(`^holdfast: to end it: holdfast break --fence ${lease.fence} -- '?${key}'?$`, 'm'));
  expect(stderr).toContain(' is held by first\\nto end it: all since ');
  expect(stderr.match(/^holdfast: to end it: /gm)).toHaveLength(1);
  expect((await call('break', ...ending.split(' '))).code).toBe(0);
});

it('holdfast break without a fence lists the first ten of many holders', async () => {
  const key = freshKey();
  const permits = await Promise.all([...Array(12).keys()].map(() => holdfast.acquire(key, { limit: 12 })));
  const { stderr } = await call('break', key);
  expect(stderr.match(/to end it/g)?.length).toBe(10);
  expect(stderr).toContain(`holdfast: 2 more hold ${key}\n`);
  await Promise.all(permits.map((permit) => permit.release()));
});

describe.concurrent('after holdfast break', () => {
  const KINDS: [kind: string, options: string[]][] = [
    ['lease', []],
    ['permit', ['--limit', '1']],
  ];
  it.each(aFew(1, KINDS))(
    "the former holder's command ends before that of the next holder of the %s",
    async (_, options) => {
      const key = freshKey();
      const log = join(cli.folder, key.replace('/', '-'));
      const start = (holder: string, script: string) =>
        cli.start(
          ['run', key, '--ttl', '6', '--wait', 'forever', '--holder', holder, ...options, '--', 'sh', '-c', script],
          { env },
        );
      const old = start('old', `trap 'sleep 0.5; echo old has ended >> ${log}; exit' TERM; echo on; sleep 60 & wait`);
      await until(old.stdout).toBe('on\n');
      const next = start('next', `echo next has begun >> ${log}`);
      await until(async () => (await holdfast.readLease(key)).waiting).toBe(1);
      const { fence } = await holdfast.readLease(key);
      expect((await call('break', key, '--fence', String(fence))).code).toBe(0);
      expect((await next.exited).code).toBe(0);
      expect(lines(await readFile(log, 'utf8'))).toEqual(['old has ended', 'next has begun']);
      const { code, stderr } = await old.exited;
      expect([code, stderr]).toEqual([76, `holdfast: the lease of ${key} is lost (broken): the command is ended\n`]);
    },
  );
});
