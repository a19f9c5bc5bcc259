import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aFew, isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

let keys = 0;
const freshKey = () => `permits/${++keys}`;
const env = { HOLDFAST_ENDPOINT: api.url };
const start = (verb: string, ...args: string[]) => cli.start([verb, ...args], { env });
const call = (verb: string, ...args: string[]) => cli.call([verb, ...args], { env });
/** Runs in a process of its own, because the command inherits its streams. */
const run = (key: string, ...args: string[]) => start('run', key, ...args).exited;
const read = (key: string) => holdfast.readLease(key, { waiters: true });

/** A job that says that it has begun, and goes on until a file is there. */
let jobs = 0;
function job(key: string, ...options: string[]) {
  const file = join(cli.folder, `done-${++jobs}`);
  const script = `echo "on $HOLDFAST_FENCE"; while [ ! -e '${file}' ]; do sleep 0.05; done`;
  const started = start('run', key, '--holder', `job-${jobs}`, ...options, '--', 'sh', '-c', script);
  return {
    ...started,
    begun: () => until(started.stdout).toMatch(/^on \d+\n$/),
    fence: () => Number(started.stdout().slice(3)),
    finish: async () => {
      await writeFile(file, '');
      return started.exited;
    },
  };
}

describe.concurrent('holdfast run --also', () => {
  it('holdfast run --also holds all keys, and passes their fences to the command', async () => {
    const key = freshKey();
    const script = 'echo "$HOLDFAST_KEY $HOLDFAST_FENCES"';
    const also = ['--limit', '5', '--also', 'sum=20', '--also', `${key}=b=3`];
    const working = job(key, ...also);
    await working.begun();
    for (const [one, limit] of [
      [key, 5],
      ['sum', 20],
      [`${key}=b`, 3],
    ] as const)
      expect(await read(one)).toMatchObject({ used: 1, limit, holders: [{ holder: expect.stringMatching(/^job-/) }] });
    await working.finish();
    const { code, stdout } = await run(key, ...also, '--', 'sh', '-c', script);
    const fences = JSON.parse(stdout.slice(stdout.indexOf('{')));
    expect([code, stdout.startsWith(`${key} {`)]).toEqual([0, true]);
    expect(Object.keys(fences).sort()).toEqual([key, `${key}=b`, 'sum'].sort());
    expect(fences[key]).toBe(working.fence() + 1);
    for (const one of [key, 'sum', `${key}=b`]) expect((await read(one)).used).toBe(0);
  });

  it.runIf(isFull)('holdfast run --also names the key that is held, and releases the others', async () => {
    const [key, total] = [`${freshKey()}/tenant`, freshKey()];
    const other = job(total, '--limit', '1');
    await other.begun();
    const { code, stderr } = await run(key, '--limit', '2', '--also', `${total}=1`, '--', 'echo', 'never');
    expect([code, stderr]).toEqual([75, expect.stringMatching(new RegExp(`^holdfast: ${total} is held by job-`))]);
    expect((await read(key)).used).toBe(0);
    await other.finish();
  });

  it.runIf(isFull)('holdfast run --also ends the command if the permit of any key is lost', async () => {
    const [key, total] = [`${freshKey()}/tenant`, freshKey()];
    const working = job(key, '--limit', '2', '--also', `${total}=5`, '--ttl', '6');
    await working.begun();
    const [holder] = (await read(total)).holders;
    expect((await call('break', total, '--fence', String(holder?.fence))).code).toBe(0);
    const { code, stderr } = await working.exited;
    expect(code).toBe(76);
    expect(stderr).toContain(`the lease of ${total} is lost (broken): the command is ended`);
    expect((await read(key)).used).toBe(0);
  });

  it.each(['total', 'total=', 'total=0', 'total=201', '=5'])('holdfast run refuses --also %s', async (also) => {
    const { code, stderr } = await run(freshKey(), '--also', also, '--', 'echo', 'never');
    expect([code, stderr]).toEqual([64, expect.stringContaining('--also must be a key and a limit from 1 to 200')]);
  });

  it('holdfast run --also refuses a key that is named twice', async () => {
    const key = freshKey();
    const { code, stderr } = await run(key, '--limit', '5', '--also', `${key}=20`, '--', 'echo', 'never');
    expect([code, stderr]).toEqual([64, expect.stringContaining(`${key} is in two entries`)]);
  });
});

describe.concurrent('holdfast run --limit', () => {
  it('holdfast run --limit runs that many commands at once, and names their holders', async () => {
    const key = freshKey();
    const one = job(key, '--limit', '2');
    await one.begun();
    const two = job(key, '--limit', '2');
    await two.begun();
    const { code, stdout, stderr } = await run(key, '--limit', '2', '--', 'echo', 'never');
    expect([code, stdout]).toEqual([75, '']);
    expect(stderr).toMatch(new RegExp(`^holdfast: ${key} is held by job-\\d+ until \\S+Z, in use: 2 of 2\n$`));
    expect((await one.finish()).code).toBe(0);
    expect(await run(key, '--limit', '2', '--', 'echo', 'now')).toMatchObject({ code: 0, stdout: 'now\n' });
    expect((await two.finish()).code).toBe(0);
    expect(two.fence()).toBeGreaterThan(one.fence());
    expect(await read(key)).toMatchObject({ used: 0, limit: 2 });
  });
});

it('--shared runs beside others, and --exclusive alone', async () => {
  const key = freshKey();
  const readers = [job(key, '--shared'), job(key, '--shared', '--weight', '2')];
  await Promise.all(readers.map(({ begun }) => begun()));
  const writer = job(key, '--exclusive', '--wait', 'forever');
  await until(async () => (await read(key)).waiting).toBe(1);
  // A later reader waits behind the writer.
  const late = await run(key, '--shared', '--', 'true');
  expect(late.code).toBe(75);
  expect(late.stderr).toContain('in use: 3 of 200');
  const alone = await run(key, '--exclusive', '--', 'true');
  expect(alone.stderr).toMatch(/in use: 3 of 200\n$/);
  for (const reader of readers) await reader.finish();
  await writer.begun();
  expect(await read(key)).toMatchObject({ holders: [{ fence: writer.fence(), mode: 'exclusive' }] });
  expect((await run(key, '--shared', '--', 'true')).code).toBe(75);
  expect((await writer.finish()).code).toBe(0);
  expect((await run(key, '--shared', '--', 'true')).code).toBe(0);
});

it('a script acquires a permit, extends it, and releases it', async () => {
  const key = freshKey();
  const { code, stdout } = await call('acquire', key, '--limit', '8', '--weight', '4', '--ttl', '600');
  expect(code).toBe(0);
  const file = stdout.trim();
  expect(await read(key)).toMatchObject({ used: 4, limit: 8 });
  expect((await call('heartbeat', file, '--ttl', '1200')).code).toBe(0);
  expect((await read(key)).holders).toMatchObject([{ ttlSeconds: 1200 }]);
  const held = await call('acquire', key, '--limit', '8', '--weight', '5', '--held-exit-code', '9');
  expect(held).toMatchObject({ code: 9, stdout: '' });
  expect(held.stderr).toContain('in use: 4 of 8');
  expect((await call('release', file)).code).toBe(0);
  expect((await read(key)).used).toBe(0);
  expect(existsSync(file)).toBe(false);
});

it('holdfast queue shows permits and the line, and holdfast cancel removes a waiter', async () => {
  const key = freshKey();
  const first = job(key, '--limit', '1');
  await first.begun();
  const second = job(key, '--limit', '1', '--wait', 'forever');
  await until(async () => (await read(key)).waiting).toBe(1);
  const { stdout } = await call('queue', key);
  const [facts = '', permits = '', line = ''] = stdout.split('\n\n');
  expect(facts).toMatch(/^state +held\nused +1 of 1\nlimit named by +job-\d+\nwaiting +1$/m);
  expect(permits).toMatch(/^HOLDER +STATE +FENCE .*\njob-\d+ +held +\d+ /);
  const ticket = /^PLACE +KIND .*\n +1 +caller +job-\d+ .* (\S+)\n$/.exec(line)?.[1] ?? '';
  expect((await call('cancel', key, ticket)).code).toBe(0);
  expect((await second.exited).code).toBe(76);
  const [json = ''] = (await call('queue', key, '--json')).stdout.split('\n');
  expect(JSON.parse(json)).toMatchObject({ used: 1, waiting: 0, waiters: [] });
  await first.finish();
});

it.each(
  aFew<[string[], string]>(4, [
    [['--limit', '0'], "--limit must be a whole number from 1 to 200, not '0'"],
    [['--limit', '201'], "--limit must be a whole number from 1 to 200, not '201'"],
    [['--limit', '5', '--weight', '6'], "--weight must be a whole number from 1 to 5, not '6'"],
    [['--weight', '2'], '--weight needs --limit or --shared'],
    [['--exclusive', '--shared'], '--exclusive excludes --shared, --limit and --weight'],
    [['--exclusive', '--limit', '5'], '--exclusive excludes --shared, --limit and --weight'],
    [['--exclusive', '--weight', '2'], '--exclusive excludes --shared, --limit and --weight'],
    [['--limit', '5', '--data', JSON.stringify('x'.repeat(300))], 'data: must be at most 256 bytes'],
  ]),
)('run and acquire refuse %j with 64, and do not acquire', async (options, message) => {
  const key = freshKey();
  const leases = join(cli.folder, '.local/state/holdfast/leases');
  const before = await readdir(leases).catch(() => []);
  for (const [verb, command] of [
    ['run', ['--', 'true']],
    ['acquire', []],
  ] as const) {
    const { code, stderr, stdout } = await call(verb, key, ...options, ...command);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain(`holdfast: ${message}`);
    expect(stderr).toContain(`holdfast: see holdfast ${verb} --help`);
  }
  expect(await holdfast.readLease(key)).toMatchObject({ state: 'free' });
  expect(await readdir(leases).catch(() => [])).toEqual(before);
});

describe('a key with several holders', () => {
  it.runIf(isFull)('status, queue and watch show the holders of a key and its line', async () => {
    const key = freshKey();
    const jobs = [job(key, '--limit', '3'), job(key, '--limit', '3'), job(key, '--limit', '3')];
    for (const { begun } of jobs) await begun();
    const waiting = job(key, '--limit', '3', '--wait', 'forever');
    await until(async () => (await read(key)).waiting).toBe(1);
    expect((await call('status', key)).stdout).toMatch(
      new RegExp(`^KEY .*\n${key} +held +3 of 3 +job-\\d+ and 2 more +\\d+ .* 1\n$`),
    );
    expect((await call('queue', key)).stdout).toMatch(
      /^state +held\nused +3 of 3\n(.*\n)waiting +1\n\nHOLDER(.*\n){4}\nPLACE/m,
    );
    const watched = start('watch', key, '--until', 'held');
    expect((await watched.exited).stdout).toMatch(
      new RegExp(`^\\S+Z  ${key} is held by job-\\d+, job-\\d+, job-\\d+, in use: 3 of 3, 1 in line\n$`),
    );
    const freed = start('watch', key, '--until', 'free', '--interval', '0.1');
    await until(freed.stdout).toContain('in use: 3 of 3');
    for (const { finish } of [...jobs, waiting]) await finish();
    expect((await freed.exited).stdout).toMatch(new RegExp(`\n\\S+Z  ${key} is free\n$`));
  });

  it.runIf(isFull)('a caller without --limit is refused with 75 beside other holders', async () => {
    const key = freshKey();
    const shared = job(key, '--limit', '2');
    await shared.begun();
    const refused = await run(key, '--', 'echo', 'never');
    expect([refused.code, refused.stdout]).toEqual([75, '']);
    expect(refused.stderr).toMatch(new RegExp(`^holdfast: ${key} is held by job-\\d+ until \\S+Z, in use: 1 of 2\n$`));
    const alone = job(key, '--wait', 'forever');
    await until(async () => (await read(key)).waiting).toBe(1);
    expect((await shared.finish()).code).toBe(0);
    await alone.begun();
    const held = await run(key, '--limit', '2', '--', 'echo', 'never');
    expect([held.code, held.stderr]).toEqual([75, expect.stringMatching(/ is held by job-\d+ since \S+Z until \S+Z /)]);
    expect((await alone.finish()).code).toBe(0);
  });
});

it.runIf(isFull)('run and acquire warn if the limit differs from that of the last grant', async () => {
  const key = freshKey();
  const first = job(key, '--limit', '5');
  await first.begun();
  const warning = (from: number, to: number) =>
    `holdfast: the limit of ${key} was ${from}, and is now ${to}: all callers of a key should pass the same --limit\n`;
  expect(await run(key, '--limit', '3', '--', 'true')).toMatchObject({ code: 0, stderr: warning(5, 3) });
  expect(await run(key, '--limit', '3', '--', 'true')).toMatchObject({ code: 0, stderr: '' });
  const acquired = await call('acquire', key, '--limit', '4');
  expect(acquired.stderr).toContain(warning(3, 4));
  expect((await call('release', acquired.stdout.trim())).code).toBe(0);
  await first.finish();
});
