import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { ACCOUNT, deployed, environment, REGION, run, user } from './support/aws.ts';

/** The emulator is on this machine, under the names of its APIs too. */
const RESOLVE = `
  import dns from 'node:dns';
  const { lookup } = dns;
  dns.lookup = (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest);
`;

const NAME = `holdfast-${manifest.version}`;

it('the command deploys from an empty folder, and takes a lease', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-empty-'));
  try {
    await cp(join('release', NAME), join(folder, NAME), { recursive: true });
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(RESOLVE)}`;
    const shell = { cwd: folder, env: { ...environment(), AWS_REGION: REGION, NODE_OPTIONS } };
    const command = `${process.execPath} ${NAME}/holdfast.mjs`;
    const deployed = await run('sh', ['-c', `${command} deploy --stage three --create --yes`], shell);
    expect(deployed.exitCode, deployed.output).toBe(0);
    const [, endpoint] = deployed.output.match(/^ApiUrl (\S+)$/m) ?? [];
    const taken = await run(
      'sh',
      ['-c', `export HOLDFAST_ENDPOINT='${endpoint}'; ${command} run nightly -- sh -c 'echo under a lease'`],
      shell,
    );
    expect(taken.output).toContain('under a lease');
    expect(taken.exitCode).toBe(0);
    // If the answer of the release was too late for the command, the release lands anyway.
    await expect
      .poll(
        async () => {
          const { output } = await run(
            'sh',
            ['-c', `HOLDFAST_ENDPOINT='${endpoint}' ${command} status --all --json`],
            shell,
          );
          return JSON.parse(output);
        },
        { timeout: 300_000, interval: 1000 },
      )
      .toMatchObject({ key: 'nightly', state: 'released' });
    const lift = (table: string) => run('sh', ['-c', `${command} lift-fences --table ${table} --yes`], shell);
    expect(await lift('holdfast-three-leases')).toEqual({
      exitCode: 0,
      output: `1 fences of holdfast-three-leases in account ${ACCOUNT}, region ${REGION} were lifted\n`,
    });
    expect(await lift('holdfast-three-commits')).toMatchObject({
      exitCode: 64,
      output: expect.stringContaining('is not a table of leases: its key is path (S)'),
    });
    expect(await lift('holdfast-three-lease')).toMatchObject({
      exitCode: 64,
      output: expect.stringContaining('there is no table holdfast-three-lease in'),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** Runs the command of the release as a user with these keys in the profile `ops` of the AWS tools. */
async function commandOf(url: string, { accessKeyId, secretAccessKey }: Awaited<ReturnType<typeof user>>) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-keys-'));
  await Promise.all(['.aws', 'holdfast'].map((name) => mkdir(join(folder, name))));
  const keys = `[ops]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`;
  await writeFile(join(folder, '.aws/credentials'), keys);
  const profiles = { keys: { endpoint: url, region: REGION, awsProfile: 'ops' } };
  await writeFile(join(folder, 'holdfast/config.json'), JSON.stringify({ default: 'keys', profiles }));
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(RESOLVE)}`;
  const env = { PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: folder, NODE_OPTIONS };
  const file = join('release', NAME, 'holdfast.mjs');
  return {
    holdfast: (...args: string[]) => run(process.execPath, [file, ...args], { env }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

const PATIENT = ['--timeout', '300'];

it("the command signs with a profile's keys, and may do what IAM says", async () => {
  const { ApiUrl: url = '' } = await deployed('three');
  const api = `arn:aws:execute-api:${REGION}:${ACCOUNT}:${new URL(url).hostname.split('.')[0]}/$default`;
  const Resource = [`${api}/GET/v1/leases`, `${api}/POST/v1/leases/acquire`, `${api}/POST/v1/leases/release`];
  const keys = await user('command-operator', [{ Effect: 'Allow', Action: 'execute-api:Invoke', Resource }]);
  const { holdfast, remove } = await commandOf(url, keys);
  try {
    const ran = await holdfast('run', 'signed', ...PATIENT, '--', 'sh', '-c', 'echo "fence $HOLDFAST_FENCE"');
    expect(ran).toEqual({ exitCode: 0, output: expect.stringMatching(/^fence \d+\n$/) });
    const listed = await holdfast('status', 'signed', '--all', '--json');
    expect(JSON.parse(listed.output)).toMatchObject({ key: 'signed', holder: expect.any(String) });
    const refused = await holdfast('break', 'signed', '--fence', '1');
    expect(refused.exitCode, refused.output).toBe(77);
    const unknown = await holdfast('status', '--profile', 'other');
    expect(unknown.exitCode, unknown.output).toBe(64);
    const doctor = await holdfast('doctor');
    expect(doctor.output).toContain('ok      credentials: profile ops (keys)\n');
    expect(doctor.output).toMatch(/^ok {6}calls: 3 of \d+ are allowed$/m);
    expect(doctor.output).not.toContain('call acquire: refused');
    expect(doctor.output).toMatch(/^note {4}call breakLease: refused: .*POST\/?.*\/v1\/leases\/break is missing$/m);
  } finally {
    await remove();
  }
});
