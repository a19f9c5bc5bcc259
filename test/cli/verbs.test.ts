import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, realpath, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import packageJson from '../../cli/package.json' with { type: 'json' };
import { helpOf } from '../../cli/src/help.ts';
import { VERBS } from '../../cli/src/verbs.ts';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { readHealth } from '../../functions/contract/health.ts';
import { readContract } from '../../functions/contract/read.ts';
import { whoami } from '../../functions/contract/whoami.ts';
import type { LambdaHandler } from '../../local/lambda.ts';
import { listen } from '../../local/listen.ts';
import { systemClock as clock } from '../../shared/surroundings/clock.ts';
import { builtCli } from '../support/programs/cli.ts';
import { startApi } from '../support/stack/api.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { commitWorld } from '../support/worlds/commits.ts';
import { expiryWorld } from '../support/worlds/expiry.ts';
import { leaseWorld } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';
import { rateHandlers } from '../support/worlds/rates.ts';

let api: Awaited<ReturnType<typeof startApi>>;
let cli: Awaited<ReturnType<typeof builtCli>>;
let holdfast: Holdfast;
let leaseHandlers: Awaited<ReturnType<typeof leaseWorld>>['handlers'];

beforeAll(async () => {
  const worlds = [leaseWorld({ clock }), commitWorld({ clock }), nameserviceWorld({ clock })] as const;
  const [leases, commits, names] = await Promise.all(worlds);
  leaseHandlers = leases.handlers;
  const tables = { leasesTable: leases.table, commitsTable: commits.table, nameserviceTable: names.table };
  const locations = { ...tables, waitersTable: undefined, bucket: commits.bucket };
  // The clock of the report is two hours ahead.
  const expired = await expiryWorld({ clock: { ...clock, now: () => clock.now() + 7_200_000 }, locations });
  const handlers = { ...leases.handlers, ...commits.handlers, ...names.handlers, ...expired.handlers() };
  [api, cli] = await Promise.all([
    startApi({
      ...handlers,
      ...rateHandlers(leases.dependencies),
      ...{ readContract, readHealth: readHealth(), whoami: whoami() },
    }),
    builtCli(),
  ]);
  holdfast = new Holdfast({ endpoint: api.url, holder: 'the other' });
});
afterAll(() => Promise.all([api.stop(), cli.remove()]));

const run = (...args: string[]) => cli.call(args, { env: { HOLDFAST_ENDPOINT: api.url } });
const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect(code, stderr).toBe(0);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
};

const isThere = (program: string) =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, program)));

describe('every verb', () => {
  it.runIf(isFull)('every verb has an example, and the examples run in order in one shell', async () => {
    const bin = join(cli.folder, 'bin');
    await mkdir(bin);
    await symlink(cli.file, join(bin, 'holdfast'));
    await writeFile(join(cli.folder, 'report.json'), '{}');
    const script = Object.entries(VERBS).map(([name, verb]) => {
      expect(helpOf(name, verb)).toContain(`Example:\n  ${verb.example}`);
      expect(verb.example).toContain(`holdfast ${name}`);
      // The console serves until a user ends it, so the shell waits for its address and then ends it.
      const served = `${verb.example} >address & until [ -s address ]; do sleep 0.1; done; kill $!; wait $!`;
      return `${name === 'console' ? served : verb.example}\necho "exit $?: ${name}" >&2`;
    });
    const env = {
      PATH: [bin, dirname(process.execPath), process.env.PATH].join(':'),
      HOME: cli.folder,
      HOLDFAST_ENDPOINT: api.url,
      npm_config_registry: 'http://127.0.0.1:9',
      npm_config_fetch_retries: '0',
    };
    const { stderr } = await promisify(execFile)('bash', ['-c', script.join('\n')], { cwd: cli.folder, env });
    const exits = Object.fromEntries(
      [...stderr.matchAll(/^exit (\d+): (.*)$/gm)].map(([, code, name]) => [name, code]),
    );
    // There is no such lease to break any more, no such task to cancel, no slot to forget, no registry, and no release beside the command.
    const ofReleases = ['deploy', 'parameters', 'drain', 'resume', 'history', 'lift-fences'].map((name) => [
      name,
      '64',
    ]);
    const refused: Record<string, string> = {
      break: '1',
      cancel: '1',
      next: '1',
      forget: '1',
      dev: '69',
      ...Object.fromEntries(ofReleases),
    };
    const expected = Object.keys(VERBS).map((name) => [name, refused[name] ?? '0']);
    expect(exits, stderr).toEqual(Object.fromEntries(expected));
  });

  it('every verb is in the overview', async () => {
    const { code, stdout } = await run('--help');
    expect(code).toBe(0);
    for (const name of Object.keys(VERBS)) expect(stdout).toMatch(new RegExp(`^  ${name} +\\w`, 'm'));
    const guide = await readFile('docs/cli.md', 'utf8');
    for (const name of Object.keys(VERBS)) expect(guide).toMatch(new RegExp(`\`(holdfast )?${name}\\b`));
    const help = `${helpOf('run', VERBS.run as never)}\n`;
    for (const args of [
      ['run', '--help'],
      ['run', '-h'],
      ['help', 'run'],
    ])
      expect(await run(...args)).toEqual({ code: 0, stdout: help, stderr: '' });
    for (const option of ['--version', '-v']) expect((await run(option)).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('the page docs/deploy.md lists the options of deploy as the help does', async () => {
    const help = helpOf('deploy', VERBS.deploy as never);
    const options = help.split('\n').filter((line) => line.startsWith('      --'));
    expect(await readFile('docs/deploy.md', 'utf8')).toContain(`\`\`\`\n${options.join('\n')}\n\`\`\``);
  });

  it.each(
    aFew<[string[], string]>(2, [
      [[], 'Usage: holdfast VERB'],
      [['hold'], "holdfast: there is no verb 'hold'\n"],
      [['rnu', 'k', '--', 'true'], "holdfast: there is no verb 'rnu': did you mean run?\n"],
      [['help', 'stauts'], "holdfast: there is no verb 'stauts': did you mean status?\n"],
      [['status', '--hodler', 'me'], 'holdfast: there is no option --hodler: did you mean --holder?\n'],
      [['status', 'a', 'b'], "holdfast: there is one word too many: 'b'"],
      [
        ['status', '--state', 'lost'],
        "holdfast: --state must be one of active, held, expired, released, free, capped, not 'lost'",
      ],
      [['break', 'k'], 'holdfast: --fence is missing'],
      [['commit', 'a', 'b'], 'holdfast: one of --create and --if-match must be given'],
      [
        ['commit', 'a', 'no-such-file', '--create'],
        'holdfast: no-such-file cannot be read: no such file or directory\n',
      ],
      [['commit', 'a', '.', '--create'], 'holdfast: . cannot be read: it is a folder\n'],
      [['commit', 'a', '-', '--create', '--fence', 'k'], "holdfast: --fence must be KEY=TOKEN, not 'k'"],
      [['commit', 'a', '-', '--create', '--fenced'], 'holdfast: --fenced needs HOLDFAST_KEY'],
      [['commit', 'a', '-', '--create', '--metadata', 'x'], "holdfast: --metadata must be NAME=VALUE, not 'x'"],
      [['publish', 'publishCommit', 'a', 't:=x'], "holdfast: the text after t:= must be JSON, not 'x'"],
      [['publish', 'publishCommit', 'a', 'address=x', 't=2'], 'holdfast: t: '],
      [
        ['heartbeat', 'package.json'],
        "holdfast: 'package.json' is not a lease file (it lacks the key or the proof): give the path that holdfast acquire printed\n",
      ],
      [
        ['heartbeat', 'job1'],
        "holdfast: 'job1' is not a lease file (no such file or directory): give the path that holdfast acquire printed\n",
      ],
      [['release', 'job1'], "holdfast: 'job1' is not a lease file (no such file or directory): give the path"],
      [['release', ''], "holdfast: '' is not a lease file"],
      [['release', '/no/such/folder/lease'], "holdfast: '/no/such/folder/lease' is not a lease file"],
      [['completion', 'ksh'], "holdfast: the shell must be one of bash, zsh, fish, not 'ksh'"],
    ]),
  )('every verb refuses %j with 64', async (args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain(message);
  });
});

it.each(['ann:secret', ':secret'])('an endpoint with the user %s is refused with 64, and not shown', async (user) => {
  const { code, stderr } = await run('status', '--endpoint', `https://${user}@api.example`);
  expect(code).toBe(64);
  expect(stderr).toContain("the endpoint must be a URL of http or https alone, not 'https://***@api.example'\n");
  expect(stderr).not.toContain('secret');
});

describe('a script', () => {
  it('a script acquires, extends and releases a lease without seeing its proof', async () => {
    const acquired = await run('acquire', 'script/1', '--ttl', '60', '--holder', 'me');
    const file = acquired.stdout.trim();
    expect(acquired.code).toBe(0);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(file))).mode & 0o777).toBe(0o700);
    const { leaseId } = JSON.parse(await readFile(file, 'utf8'));
    expect(leaseId).toMatch(/^e\./);
    const { expiresAt, fence } = await holdfast.readLease('script/1');
    const [beat] = await json('heartbeat', file, '--ttl', '600');
    expect(beat).toMatchObject({ key: 'script/1', holder: 'me', fence });
    expect(beat.expiresAt > (expiresAt ?? '')).toBe(true);
    const other = await cli.call(['release', file], { env: { HOLDFAST_ENDPOINT: 'http://127.0.0.1:1' } });
    expect(other.code).toBe(64);
    const released = await run('release', file);
    expect(released).toMatchObject({ code: 0, stdout: 'script/1 is released\n' });
    expect(JSON.stringify([acquired, beat, released, other])).not.toContain(leaseId);
    await expect(stat(file)).rejects.toThrow('ENOENT');
    const again = `there is nothing to release: ${file} is gone, as after a release\n`;
    expect(await run('release', file)).toEqual({ code: 0, stdout: again, stderr: '' });
    expect(await json('release', file)).toEqual([{ leaseFile: file, released: false, reason: 'noLeaseFile' }]);
  });

  it.each([
    ['2m', 120],
    ['1h', 3600],
    ['0.5d', 43_200],
    ['90s', 90],
    ['90', 90],
  ])('a script may give the ttl %s as %d seconds', async (ttl, seconds) => {
    const [{ leaseFile }] = await json(
      'acquire',
      `script/ttl-${ttl}`,
      '--ttl',
      ttl,
      '--lease-file',
      join(cli.folder, ttl),
    );
    expect(await holdfast.readLease(`script/ttl-${ttl}`)).toMatchObject({ ttlSeconds: seconds });
    const [{ remainingMs }] = await json('heartbeat', leaseFile, '--ttl', ttl);
    expect(Math.abs(remainingMs - seconds * 1000)).toBeLessThan(60_000);
    expect((await run('release', leaseFile)).code).toBe(0);
  });

  it('a script that names a relative lease file receives the whole path', async () => {
    const { exited } = cli.start(['acquire', 'script/5', '--lease-file', 'mine'], {
      env: { HOLDFAST_ENDPOINT: api.url },
    });
    const { stdout } = await exited;
    expect(stdout).toBe(`${join(await realpath(cli.folder), 'mine')}\n`);
    expect((await run('release', stdout.trim())).code).toBe(0);
  });

  it('a script learns from the exit code that it has lost a lease', async () => {
    const file = join(cli.folder, 'lease');
    const [{ fence, leaseFile, ...more }] = await json('acquire', 'script/2', '--lease-file', file);
    expect([leaseFile, Object.keys(more).sort()]).toEqual([file, ['expiresAt', 'holder', 'key']]);
    expect((await run('acquire', 'script/3', '--lease-file', file)).code).toBe(64); // it is another lease's
    expect(await holdfast.readLease('script/3')).toMatchObject({ state: 'free' });
    await holdfast.breakLease({ key: 'script/2', fence });
    expect((await run('heartbeat', file)).code).toBe(76);
    const { code, stdout } = await run('release', file);
    expect([code, stdout]).toEqual([76, 'script/2 was no longer held (broken)\n']);
  });

  it('a script keeps the lease file if the release fails, for another try', async () => {
    const file = join(cli.folder, 'unreleased');
    let refuses = true;
    const release: LambdaHandler = (event, context) =>
      leaseHandlers.release(refuses ? { ...Object(event), body: '{}' } : event, context);
    const service = await startApi({ ...leaseHandlers, release });
    const env = { HOLDFAST_ENDPOINT: service.url };
    expect((await cli.call(['acquire', 'script/6', '--lease-file', file], { env })).code).toBe(0);
    expect((await cli.call(['release', file], { env })).code).toBe(64);
    refuses = false;
    expect(await cli.call(['release', file], { env })).toMatchObject({ code: 0, stdout: 'script/6 is released\n' });
    await service.stop();
  });

  it('a script reads who holds a lease without a file', async () => {
    await using _ = await holdfast.acquire('script/4');
    const file = join(cli.folder, 'never');
    const { code, stderr } = await run('acquire', 'script/4', '--lease-file', file);
    expect(code).toBe(75);
    expect(stderr).toContain('script/4 is held by the other since');
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });
});

describe('an operator', () => {
  it('an operator reports and lists what has expired, and cleans it only with --yes', async () => {
    const [{ leaseFile }] = await json('acquire', 'op/left', '--ttl', '2');
    await expect.poll(() => holdfast.readLease('op/left')).toMatchObject({ state: 'expired' });
    expect((await run('report')).stdout).toMatch(/^abandonedLease +[1-9]/m);
    const table = await run('expired', '--kind', 'abandonedLease');
    expect(table.stdout).toMatch(/^abandonedLease +op\/left .*Z +\d+s +\D/m); // the age is that of now, and the report sees two hours
    expect(table.stderr).toMatch(/^holdfast: from the report of \S+Z \(\S+ ago\)\n$/);
    const listed = await json('expired', '--kind', 'abandonedLease');
    expect(listed.map(({ key }) => key)).toContainEqual({ key: 'op/left' });
    const dry = await run('clean', '--kind', 'abandonedLease');
    expect(dry.code).toBe(0);
    expect(dry.stdout).toMatch(/^abandonedLease +op\/left .* would be deleted$/m);
    expect(dry.stdout).toMatch(/\d+ would be deleted, \d+ spared\n$/);
    expect(await holdfast.readLease('op/left')).toMatchObject({ state: 'expired' });
    const old = await run('clean', '--kind', 'abandonedLease', '--older-than', '86400', '--yes');
    expect(old.stdout).toMatch(/spared: tooYoung/);
    expect(old.stderr).toBe('holdfast: tooYoung: expired within 1d: see --older-than (1h)\n');
    const [page] = await json('clean', '--kind', 'abandonedLease', '--yes');
    expect(page.deleted.records.map(({ key }: { key: object }) => key)).toContainEqual({ key: 'op/left' });
    expect(await holdfast.readLease('op/left')).toMatchObject({ state: 'free' });
    expect(leaseFile).toContain('holdfast/leases');
  });

  it('an operator commits text, stdin and what has to be uploaded, under a fence', async () => {
    const large = join(cli.folder, 'large');
    await writeFile(large, Buffer.alloc(1_500_000, 'x'));
    const options = ['--create', '--metadata', 'a=b=c', '--content-type', 'text/plain', '--commit-id', 'one'];
    const [{ etag }] = await json('commit', 'cli/large', large, ...options);
    const { size, metadata, contentType } = await holdfast.readCommit({ path: 'cli/large' });
    expect([size, metadata, contentType]).toEqual([1_500_000, { a: 'b=c' }, 'text/plain']);
    const again = await run('commit', 'cli/large', large, '--create');
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('[PreconditionFailed, trace')]);
    const fenced = await cli.call(['commit', 'cli/large', '-', '--if-match', etag, '--fenced'], {
      env: { HOLDFAST_ENDPOINT: api.url, HOLDFAST_KEY: 'k', HOLDFAST_FENCE: '7' },
      stdin: 'from stdin',
    });
    expect(fenced.stdout).toMatch(/^size +10$/m);
    const { fence } = await holdfast.readCommit({ path: 'cli/large' });
    expect(fence).toEqual({ key: 'k', token: 7 });
    const piped = await promisify(execFile)(
      'bash',
      ['-c', `"$0" "$1" commit cli/piped <(echo piped) --create`, process.execPath, cli.file],
      {
        env: { PATH: process.env.PATH, HOLDFAST_ENDPOINT: api.url },
      },
    );
    expect(piped.stdout).toMatch(/^size +6$/m);
    expect((await run('commit', 'cli/new', large, '--create', '--fence', 'a=b=9')).code).toBe(0);
    expect((await holdfast.readCommit({ path: 'cli/new' })).fence).toEqual({ key: 'a=b', token: 9 });
  });

  it.runIf(isThere('script'))('an operator sees colour and progress at a terminal, and neither elsewhere', async () => {
    await using _ = await holdfast.acquire('tty/a');
    const film = join(cli.folder, 'film');
    await writeFile(film, Buffer.alloc(2_500_000, 'x'));
    // util-linux's script makes a terminal.
    const atTerminal = async (command: string, more: Record<string, string> = {}) => {
      const env = { PATH: process.env.PATH, HOME: cli.folder, TERM: 'xterm', HOLDFAST_ENDPOINT: api.url, ...more };
      const typed = `'${process.execPath}' '${cli.file}' ${command}`;
      const { stdout } = await promisify(execFile)('script', ['-qec', typed, '/dev/null'], { cwd: cli.folder, env });
      return stdout.replaceAll('\r\n', '\n');
    };
    const dim = '\u001b[2mKEY';
    const cleared = '\r\u001b[K';
    expect(await atTerminal('status tty/')).toContain(dim);
    expect(await atTerminal('status tty/', { NO_COLOR: '1' })).toMatch(/^KEY /);
    expect((await run('status', 'tty/')).stdout).toMatch(/^KEY /);
    const uploaded = await atTerminal('commit tty/film film --create');
    for (const sent of ['0.0', '2.5'])
      expect(uploaded).toContain(`${cleared}holdfast: uploading ${sent} MB of 2.5 MB (`);
    expect(uploaded).toContain(`${cleared}\u001b[2mpath`); // the line is gone once there is a result
    const waited = await atTerminal('run tty/a --wait 1 -- true || echo "code $?"');
    expect(waited).toContain(`${cleared}holdfast: waiting: tty/a is held by the other until `);
    expect(waited).toContain('code 75');
    const piped = await run('commit', 'tty/film2', film, '--create');
    expect(piped.stderr).toBe('');
  });

  it('an operator publishes, and sees how far the index is behind', async () => {
    const tooEarly = await run('publish', 'publishCommit', 'cli', 'address=s3://cli/5', 't:=5');
    expect([tooEarly.code, tooEarly.stderr.split('\n')[1]]).toEqual([
      1,
      'holdfast: to create a ledger: holdfast publish initLedger cli',
    ]);
    await run('publish', 'fastForwardCommit', 'cli', 'address=s3://cli/5', 't:=5');
    const { stdout } = await run('publish', 'publishIndex', 'cli', 'address=s3://cli/i', 't:=3');
    expect(stdout).toBe('cli:main is updated\n{"address":"s3://cli/i","t":3}\n');
    const line = (await run('names', 'cli')).stdout.trimEnd().split('\n')[1]?.split(/ {2,}/);
    expect(line?.slice(0, 5)).toEqual(['cli:main', 'ledger', '5', '3', '2']);
    expect((await json('names', 'cli', '--kind', 'ledger'))[0]).toMatchObject({ alias: 'cli:main', commit: { t: 5 } });
    expect((await run('names', 'cli', '--kind', 'graph_source')).stdout.trimEnd().split('\n').length).toBe(1);
  });

  it('the doctor checks the endpoint, the calls, the versions, the clock and the line', async () => {
    const findings = await json('doctor');
    expect(findings.filter(({ verdict }) => verdict === 'failed')).toEqual([]);
    expect(findings).toContainEqual({ check: 'endpoint', verdict: 'ok', detail: api.url });
    expect(findings).toContainEqual({ check: 'call breakLease', verdict: 'ok', detail: 'POST /v1/leases/break' });
    const { version } = packageJson;
    const detail = `holdfast ${version}, deployment ${version}`;
    expect(findings).toContainEqual({ check: 'versions', verdict: 'ok', detail });
    expect(findings.map(({ check }) => check)).toContain('clock');
    await using _ = await holdfast.acquire('doctor/waited');
    const waiting = cli.start(['run', 'doctor/waited', '--holder', 'patient', '--wait', '1m', '--', 'true'], {
      env: { HOLDFAST_ENDPOINT: api.url },
    });
    await expect.poll(async () => (await holdfast.readLease('doctor/waited')).waiting).toBe(1);
    const { stdout } = await run('doctor');
    for (const line of [
      /^ok {6}identity: nobody: the API knows no callers$/m,
      /^ok {6}calls: \d+ of \d+ are allowed$/m,
      /^(ok|note) {4,6}report: /m,
      /^ok {6}oldest waiter: patient has waited \ds for doctor\/waited$/m,
    ])
      expect(stdout).toMatch(line);
    expect(stdout).not.toContain('call acquire');
    waiting.child.kill('SIGTERM');
    await waiting.exited;
  });

  it('the doctor fails if a third-party client commits next to commitProtocol=native', async () => {
    const { handlers, putRecord } = await commitWorld({ protocol: 'native', clock });
    const native = await startApi({ ...handlers, readContract, readHealth: readHealth(), whoami: whoami() });
    const doctor = () => cli.call(['doctor'], { env: { HOLDFAST_ENDPOINT: native.url } });
    const without = await doctor();
    expect(without.stdout).toContain(
      'ok      commits: commitProtocol=native, and no other client commits by a record\n',
    );
    expect(without.code).toBe(0);
    const record = { generation: { N: '0' }, timeout: { N: '20000' }, ttl: { N: '9999999999' } };
    await putRecord({ path: { S: 'log/7.json' }, etag: { S: '*' }, ...record });
    const beside = await doctor();
    expect(beside.stdout).toMatch(/^failed {2}commits: another client commits log\/7\.json by a record/m);
    expect(beside.code).toBe(1);
    await native.stop();
  });
});

/** Answers every request alike. */
async function canned(answer: (path: string, query: string) => { status?: number; body: object; date?: string }) {
  const seen: string[] = [];
  const server = await listen((request, response) => {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    seen.push(request.headers.authorization ?? '');
    const { status = 200, body, date } = answer(path, query);
    response.writeHead(status, { 'content-type': 'application/json', ...(date && { date }) });
    response.end(JSON.stringify(body));
  });
  return { ...server, seen };
}

describe('problems of the service', () => {
  const evil = 'a\u001b[2J\u202e\nb\u009b';
  const [parkedAt, deadline] = ['2020-01-01T00:00:00.000Z', '2020-01-02T00:00:00.000Z'];
  const lease = {
    ...{
      key: 'k',
      state: 'held',
      holder: evil,
      fence: 1,
      acquiredAt: null,
      expiresAt: null,
      remainingMs: 5,
      data: evil,
    },
    ...{ hasRecord: true, execution: null, ttlSeconds: 2, waiting: 2, holders: [] },
    waiters: [1, 2].map((at) => ({
      kind: 'task',
      ticket: `t${at}`,
      holder: evil,
      execution: null,
      parkedAt,
      deadline,
    })),
  };

  it('a terminal does not receive control characters from an answer of the service', async () => {
    const server = await canned(() => ({ body: lease }));
    const env = { HOLDFAST_ENDPOINT: server.url };
    const table = await cli.call(['queue', 'k'], { env });
    const shown = 'a\\x1b[2J\\u202e\\nb\\x9b';
    expect(table.stdout).toMatch(/^ +1 +task +a.* \d+d( \d+h)? +stops waiting \d+d( \d+h)? ago +t1$/m);
    expect(table.stdout.split(shown).length).toBe(4); // the holder, and two that wait
    const lines = await cli.call(['queue', 'k', '--json'], { env });
    for (const { stdout } of [table, lines]) expect(/[\p{Cc}\u202e]/u.test(stdout.replaceAll('\n', ''))).toBe(false);
    expect(JSON.parse(lines.stdout)).toEqual(lease);
    await server.stop();
  });

  it('a refused caller exits with 77, and the doctor says what is missing', async () => {
    const server = await canned((path) =>
      path === '/v1/health'
        ? { body: { status: 'ok', version: '9.9.9' }, date: 'Thu, 01 Jan 2026 00:00:00 GMT' }
        : path === '/v1/leases/break'
          ? { status: 404, body: { message: 'Not Found' } }
          : { status: 403, body: { message: 'Forbidden' } },
    );
    const env = { HOLDFAST_ENDPOINT: server.url };
    expect((await cli.call(['status'], { env })).code).toBe(77);
    const { code, stdout } = await cli.call(['doctor'], { env });
    expect(code).toBe(1);
    expect(stdout).toContain(`note    versions: holdfast ${packageJson.version}, deployment 9.9.9\n`);
    expect(stdout).toMatch(/^failed {2}clock: [\d.]+ s ahead of the answer's Date$/m);
    expect(stdout).toContain('note    call acquire: refused: POST /v1/leases/acquire is missing\n');
    expect(stdout).toContain('note    call breakLease: the deployment has no such call\n');
    await server.stop();
  });

  it('the doctor exits with 77 only if the caller may do nothing at all', async () => {
    const problem = { type: 'urn:holdfast:error:InvalidRequest', code: 'InvalidRequest', detail: 'd', issues: [] };
    let allowed = '/v1/leases/acquire';
    const server = await canned((path) =>
      path === allowed ? { status: 400, body: problem } : { status: 403, body: { message: 'Forbidden' } },
    );
    const doctor = () => cli.call(['doctor'], { env: { HOLDFAST_ENDPOINT: server.url } });
    const one = await doctor();
    expect([one.code, one.stdout]).toEqual([0, expect.stringMatching(/^ok {6}calls: 1 of \d+ are allowed$/m)]);
    expect(one.stdout).toMatch(/^note {4}versions: holdfast [\d.]+, deployment unknown/m);
    expect(one.stdout).toContain('note    call whoami: refused: GET /v1/whoami is missing\n');
    allowed = '';
    const none = await doctor();
    expect([none.code, none.stdout]).toEqual([
      77,
      expect.stringContaining('failed  permissions: every call is refused\n'),
    ]);
    await server.stop();
  });

  it.each(['ahead of', 'behind'])("the doctor fails if the clock is %s the service's", async (direction) => {
    const date = new Date(Date.now() + (direction === 'behind' ? 3_600_000 : -3_600_000)).toUTCString();
    const server = await canned(() => ({ status: 403, body: { message: 'Forbidden' }, date }));
    const { code, stdout } = await cli.call(['doctor'], { env: { HOLDFAST_ENDPOINT: server.url } });
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(new RegExp(`^failed  clock: 3.* s ${direction} the`, 'm')),
    ]);
    await server.stop();
  });

  it('the doctor reads past an empty page to find commits of third-party clients', async () => {
    const problem = { type: 'urn:holdfast:error:InvalidRequest', code: 'InvalidRequest', detail: 'd', issues: [] };
    const commits = [{ path: 'log/7', commitId: null }];
    const server = await canned((path, query) => {
      if (path === '/v1/health') return { body: { status: 'ok', version: packageJson.version } };
      if (path === '/v1/whoami') return { status: 403, body: { message: 'Forbidden' } };
      if (path !== '/v1/commits/in-flight' || query.includes('doctor')) return { status: 400, body: problem };
      const page = query.includes('cursor=c') ? { commits, nextCursor: null } : { commits: [], nextCursor: 'c' };
      return { body: { protocol: 'native', ...page } };
    });
    const { code, stdout } = await cli.call(['doctor'], { env: { HOLDFAST_ENDPOINT: server.url } });
    expect([code, stdout]).toEqual([1, expect.stringContaining('another client commits log/7 by a record')]);
    await server.stop();
  });

  it('the doctor says that credentials are refused, even though the health is public', async () => {
    const server = await canned((path) =>
      path === '/v1/health'
        ? { body: { status: 'ok', version: '9.9.9' } }
        : { status: 401, body: { message: 'Unauthorized' } },
    );
    const { code, stdout } = await cli.call(['doctor'], { env: { HOLDFAST_ENDPOINT: server.url } });
    expect([code, stdout]).toEqual([77, expect.stringMatching(/^failed .*HTTP 401/m)]);
    expect(stdout).not.toContain('versions');
    await server.stop();
  });

  it('the doctor says that the service does not answer, and exits with 69', async () => {
    const env = { HOLDFAST_ENDPOINT: 'http://127.0.0.1:1' };
    const { code, stdout, stderr } = await cli.call(['doctor'], { env });
    expect([code, stderr]).toEqual([69, '']);
    expect(stdout).toContain(
      'failed  answer: the connection to http://127.0.0.1:1 failed: connect ECONNREFUSED 127.0.0.1:1',
    );
  });
});

describe('the configuration', () => {
  it('the configuration is taken from options, the environment and profiles, in this order', async () => {
    const server = await canned(() => ({ body: { leases: [], nextCursor: null } }));
    const folder = join(cli.folder, 'config/holdfast');
    await mkdir(folder, { recursive: true });
    const file = join(folder, 'config.json');
    const none = 'http://127.0.0.1:1';
    await writeFile(
      file,
      JSON.stringify({ default: 'bad', profiles: { bad: { endpoint: none }, good: { endpoint: server.url } } }),
    );
    const status = async (args: string[], env: Record<string, string> = {}) =>
      (await cli.call(['status', '--json', ...args], { env: { XDG_CONFIG_HOME: dirname(folder), ...env } })).code;
    expect(await status(['--profile', 'good'])).toBe(0);
    expect(await status(['--profile', 'good'], { HOLDFAST_ENDPOINT: none })).toBe(0);
    expect(await status([], { HOLDFAST_PROFILE: 'good' })).toBe(0);
    expect(await status([], { HOLDFAST_ENDPOINT: server.url })).toBe(0);
    expect(await status(['--endpoint', server.url], { HOLDFAST_ENDPOINT: none })).toBe(0);
    expect(await status(['--profile', 'other'])).toBe(64);
    expect(await status(['--endpoint', 'ftp://x'])).toBe(64);
    for (const broken of ['{', '[]', '{"profile": {}}', '{"profiles": {"a": {"url": "x"}}}', '{"default": 1}']) {
      await writeFile(file, broken);
      expect(await status(['--endpoint', server.url]), broken).toBe(64);
    }
    const broken = { XDG_CONFIG_HOME: dirname(folder) };
    const doctor = await cli.call(['doctor'], { env: broken });
    const why = `${file}: 'default' must be the name of a profile`;
    expect(doctor).toMatchObject({ code: 64, stdout: `failed  configuration: ${why}\n`, stderr: '' });
    const { version } = packageJson;
    const said = await cli.call(['version'], { env: broken });
    expect([said.code, said.stdout]).toEqual([64, `holdfast ${version}\n`]);
    expect(said.stderr).toContain(`holdfast: ${why}\n`);
    const asJson = await cli.call(['version', '--json'], { env: broken });
    expect(JSON.parse(asJson.stdout)).toEqual({ holdfast: version, deployment: null, endpoint: null });
    expect((await cli.call(['status'])).stderr).toContain('holdfast: no endpoint: give --endpoint');
    await server.stop();
  });

  it('a token for this machine is sent, and its requests are not signed', async () => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization ?? '');
      response.end(JSON.stringify({ leases: [], nextCursor: null }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve));
    const { port } = server.address() as { port: number };
    const env = { AWS_ACCESS_KEY_ID: 'OWN', AWS_SECRET_ACCESS_KEY: 's' };
    const endpoint = `http://127.0.0.2:${port}`;
    await cli.call(['status'], { env: { ...env, HOLDFAST_ENDPOINT: endpoint } });
    await cli.call(['status'], { env: { ...env, HOLDFAST_ENDPOINT: endpoint, HOLDFAST_TOKEN: 'jwt' } });
    expect(seen).toEqual(['', 'Bearer jwt']);
    server.close();
  });
});

it('console prints an address with a token, and exits with 0 at a signal', async () => {
  const started = cli.start(['console'], { env: { HOLDFAST_ENDPOINT: api.url } });
  await expect.poll(started.stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{24}\n$/);
  const [url = '', token = ''] = started.stdout().trim().split('/#token=');
  const asked = (headers: Record<string, string>) => fetch(`${url}/v1/leases`, { headers });
  expect((await asked({})).status).toBe(401);
  const answer = await asked({ 'x-holdfast-token': token });
  expect([answer.status, Object.keys((await answer.json()) as object)]).toEqual([200, ['leases', 'nextCursor']]);
  const script = await (await fetch(`${url}/console/page.js`)).text();
  expect(script).toContain('No key is in use');
  const settings = await fetch(`${url}/console/settings`, { headers: { 'x-holdfast-token': token } });
  expect(await settings.json()).toEqual({ endpoint: api.url, write: false, local: true });
  started.child.kill('SIGTERM');
  expect((await started.exited).code).toBe(0);
});
