import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import packageJson from '../../cli/package.json' with { type: 'json' };
import { helpOf } from '../../cli/src/help.ts';
import { VERBS } from '../../cli/src/verbs.ts';
import { builtCli } from '../support/programs/cli.ts';
import { startApi } from '../support/stack/api.ts';
import { aFew } from '../support/time/rounds.ts';
import { namespaceWorld } from '../support/worlds/namespaces.ts';

let world: Awaited<ReturnType<typeof namespaceWorld>>;
let api: Awaited<ReturnType<typeof startApi>>;
let cli: Awaited<ReturnType<typeof builtCli>>;

beforeAll(async () => {
  [world, cli] = await Promise.all([namespaceWorld(), builtCli()]);
  api = await startApi(world.handlers);
});
afterAll(() => Promise.all([world.stop(), api.stop(), cli.remove()]));

const inPlace = (env?: Record<string, string>) => ({ env: { HOLDFAST_ENDPOINT: api.url, ...env } });
const run = (args: string[], env?: Record<string, string>) => cli.call(args, inPlace(env));
/** Starts a process, which `holdfast run` and signals need. */
const start = (args: string[], env?: Record<string, string>) => cli.start(args, inPlace(env));
const inTeam = { HOLDFAST_NAMESPACE: 'team-a' };
const lines = async (args: string[], env?: Record<string, string>) => {
  const { code, stdout, stderr } = await run([...args, '--json'], env);
  expect(code, stderr).toBe(0);
  return stdout.split('\n').flatMap((line) => (line ? [JSON.parse(line)] : []));
};

it('a command in a namespace holds, shows and breaks only keys of the namespace', async () => {
  const [{ fence, leaseFile }] = await lines(['acquire', 'nightly', '--ttl', '600'], inTeam);
  expect(await world.leases.rawItem('team-a/nightly')).toBeDefined();
  expect((await run(['acquire', 'nightly'], inTeam)).code).toBe(75);
  expect((await start(['run', 'nightly', '--', 'true']).exited).code).toBe(0); // the key outside of the namespace is free
  expect((await lines(['status'], inTeam)).map(({ key }) => key)).toEqual(['nightly']);
  expect((await run(['queue', 'nightly', '--namespace', 'team-b'])).stdout).toMatch(/^state +no record /m);
  // The proof is valid only in its namespace. Elsewhere the command would report a lost lease.
  const elsewhere = await run(['release', leaseFile]);
  expect([elsewhere.code, elsewhere.stderr]).toEqual([
    64,
    expect.stringContaining(`was acquired at ${api.url}, namespace team-a, and not at ${api.url}\n`),
  ]);
  expect((await run(['heartbeat', leaseFile], inTeam)).code).toBe(0);
  const ofOthers = await run(['break', 'nightly', '--fence', String(fence), '--namespace', 'team-b'], inTeam);
  expect(ofOthers.code).toBe(1);
  expect((await run(['break', 'nightly', '--fence', String(fence)], inTeam)).code).toBe(0);
});

it("a child inherits the namespace, so that its commits name the lease's fence", async () => {
  await writeFile(join(cli.folder, 'part'), 'x');
  const commit = `"${process.execPath}" "${cli.file}" commit team-a/part part --create --fenced --json`;
  const { code, stdout, stderr } = await start(['run', 'job', '--namespace', 'team-a', '--', 'sh', '-c', commit])
    .exited;
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ path: 'team-a/part' });
  const { body } = await world.of().get('commits', { path: 'team-a/part' });
  expect(body.fence.key).toBe('team-a/job');
  const none = await start(['run', 'job', '--', 'sh', '-c', 'echo "[$HOLDFAST_NAMESPACE]"']).exited;
  expect(none.stdout).toBe('[]\n');
});

it('every verb that calls the service uses the namespace', async () => {
  const part = join(cli.folder, 'part');
  await writeFile(part, 'x');
  const commit = ['commit', 'team-a/x', part, '--create'];
  expect((await run(['publish', 'initLedger', 'books'], inTeam)).code).toBe(0);
  expect((await lines(['names'], inTeam)).map(({ alias }) => alias)).toEqual(['books:main']);
  expect(await lines(['names'], { HOLDFAST_NAMESPACE: 'team-b' })).toEqual([]);
  expect((await run(commit, { HOLDFAST_NAMESPACE: 'team-b' })).code).toBe(64);
  expect((await run(commit, inTeam)).code).toBe(0);
  expect((await run(['report'], inTeam)).code).toBe(0);
  expect(await lines(['expired'], inTeam)).toEqual([]);
  expect((await run(['clean', '--yes'], inTeam)).stdout).toBe('0 deleted, 0 spared\n');
  const watched = await run(['watch', 'never-held', '--until', 'free'], inTeam);
  expect(watched.stdout).toContain('never-held: no record (never used, or last used before the retention)');
  expect((await run(['cancel', 'k', '000001795215137091-4f0c1a3e-6a52-4a3b-9b44-3f1f4e1b7a10'], inTeam)).code).toBe(1);
  for (const [name, verb] of Object.entries(VERBS))
    expect(helpOf(name, verb).includes('--namespace NAME'), name).toBe(!verb.isLocal);
  expect((await run(['names', '--help'])).stdout).toContain('--namespace NAME');
});

it('the doctor says which namespace it is, and names its routes', async () => {
  const findings = await lines(['doctor'], inTeam);
  expect(findings.filter(({ verdict }) => verdict === 'failed')).toEqual([]);
  expect(findings).toContainEqual({ check: 'namespace', verdict: 'ok', detail: 'team-a' });
  expect(findings).toContainEqual({
    check: 'call acquire',
    verdict: 'ok',
    detail: 'POST /v1/ns/team-a/leases/acquire',
  });
  expect(findings).toContainEqual({
    ...{ check: 'call readContract', verdict: 'ok', detail: 'GET /v1/ns/team-a/openapi.json' },
  });
  const none = await lines(['doctor']);
  expect(none).toContainEqual({
    check: 'namespace',
    verdict: 'ok',
    detail: 'none: the calls are for the whole deployment',
  });
});

it.each(aFew(2, ['a/b', '..', '', 'A', '-a', 'a'.repeat(33), 'a%2f']))(
  'the command refuses the namespace %j before it sends a call',
  async (name) => {
    // No server listens at this address, so a command that sent a call would exit with 69.
    const env = { HOLDFAST_ENDPOINT: 'http://127.0.0.1:1' };
    const { code, stdout, stderr } = await run(['status', `--namespace=${name}`], env);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain(`holdfast: the namespace must match /^[a-z0-9][a-z0-9-]{0,31}$/, not '${name}'\n`);
  },
);

it('the namespace comes from the option, profile, environment or default, in that order', async () => {
  const folder = join(cli.folder, 'config/holdfast');
  await mkdir(folder, { recursive: true });
  const of = (namespace?: string) => ({ endpoint: api.url, ...(namespace && { namespace }) });
  const profiles = { a: of('by-default'), b: of('by-profile'), c: of(), d: of('a/b') };
  await writeFile(join(folder, 'config.json'), JSON.stringify({ default: 'a', profiles }));
  const namespaceOf = async (args: string[], env: Record<string, string> = {}) => {
    const config = { XDG_CONFIG_HOME: dirname(folder), HOLDFAST_ENDPOINT: '', ...env };
    const { code, stdout } = await start(['run', 'k', ...args, '--', 'sh', '-c', 'echo "$HOLDFAST_NAMESPACE"'], config)
      .exited;
    return code === 0 ? stdout.trim() : code;
  };
  const env = { HOLDFAST_NAMESPACE: 'by-env' };
  expect(await namespaceOf([])).toBe('by-default');
  expect(await namespaceOf([], env)).toBe('by-env');
  expect(await namespaceOf(['--profile', 'b'], env)).toBe('by-profile');
  expect(await namespaceOf(['--profile', 'b', '--namespace', 'by-option'], env)).toBe('by-option');
  expect(await namespaceOf([], { HOLDFAST_PROFILE: 'c' })).toBe('');
  expect(await namespaceOf(['--profile', 'd'])).toBe(64);
});

it('the command prints its version, and that of the deployment if one is known', async () => {
  const { version } = packageJson;
  const known = await run(['version']);
  expect([known.code, known.stdout]).toEqual([0, `holdfast ${version}\ndeployment ${version} (${api.url})\n`]);
  expect(await lines(['version'], inTeam)).toEqual([{ holdfast: version, deployment: version, endpoint: api.url }]);
  const alone = await cli.call(['version']);
  expect([alone.code, alone.stdout, alone.stderr]).toEqual([0, `holdfast ${version}\n`, '']);
  const none = await cli.call(['version', '--json']);
  expect(JSON.parse(none.stdout)).toEqual({ holdfast: version, deployment: null, endpoint: null });
  const gone = await run(['version', '--timeout', '0'], { HOLDFAST_ENDPOINT: 'http://127.0.0.1:1' });
  expect([gone.code, gone.stdout]).toEqual([69, `holdfast ${version}\n`]);
  expect((await run(['version'], { HOLDFAST_ENDPOINT: 'ftp://x' })).code).toBe(64);
});
