import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { request as send } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { type Listening, listen } from '../../local/listen.ts';
import { containerEndpoint, type FakeKeys, instanceMetadata, ssoPortal, sts } from '../support/programs/aws-sources.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { until } from '../support/time/until.ts';
import { cliWorld } from '../support/worlds/cli-world.ts';

const { api, cli, holdfast } = await cliWorld();

/** Resolves host names of AWS to this machine, so that requests to them are signed but stay here. */
const RESOLVE = `import dns from 'node:dns';
const { lookup } = dns;
dns.lookup = (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest);`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(RESOLVE)}`;

const stops: Listening['stop'][] = [];
const kept = <Server extends Listening>(server: Server): Server => {
  stops.push(server.stop);
  return server;
};
afterAll(() => Promise.all(stops.map((stop) => stop())));

/** The API under a host name of AWS. It notes the credentials that signed each request. */
async function signedApi() {
  const seen: { id: string | undefined; token: string | undefined; path: string }[] = [];
  const { url } = kept(
    await listen((request, response) => {
      const { authorization = '', 'x-amz-security-token': token } = request.headers;
      const [, id] = /Credential=([^/]+)\//.exec(authorization) ?? [];
      seen.push({ id, token: token as string | undefined, path: request.url ?? '' });
      const { method, headers } = request;
      const host = new URL(api.url).host;
      request.pipe(
        send(new URL(request.url ?? '', api.url), { method, headers: { ...headers, host } }, (answer) => {
          response.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(response);
        }),
      );
    }),
  );
  return { endpoint: url.replace('127.0.0.1', 'abc.execute-api.eu-west-1.localhost'), seen };
}

/** A machine of one test: an empty home, an API, and no instance metadata. */
async function machine() {
  const home = await mkdtemp(join(cli.folder, 'home-'));
  await mkdir(join(home, '.aws/sso/cache'), { recursive: true });
  const { endpoint, seen } = await signedApi();
  const base = { HOME: home, NODE_OPTIONS, HOLDFAST_ENDPOINT: endpoint, AWS_EC2_METADATA_DISABLED: 'true' };
  const holdfast = (args: string[], env: Record<string, string> = {}) => cli.start(args, { env: { ...base, ...env } });
  const write = async (path: string, text: string) => {
    await writeFile(join(home, path), text);
    return join(home, path);
  };
  /** What the doctor says about the credentials, and the credentials of its requests. */
  const used = async (env: Record<string, string>) => {
    const { stdout } = await holdfast(['doctor', '--json'], env).exited;
    const findings = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { verdict, detail } = findings.find(({ check }) => check === 'credentials');
    const ids = [...new Set(seen.splice(0).map(({ id, token }) => `${id} ${token}`))];
    return { verdict, detail, keys: ids };
  };
  return { home, write, holdfast, used, seen };
}

const hour = (id: string) => (): FakeKeys => ({ id, expiresAt: Date.now() + 3_600_000 });
const signedWith = (detail: string, id: string) => ({ verdict: 'ok', detail, keys: [`${id} token of ${id}`] });

describe.concurrent('sources', () => {
  it('credentials in the environment come before every other source', async () => {
    const { used, write } = await machine();
    await write('.aws/credentials', '[default]\naws_access_key_id = FILE\naws_secret_access_key = s\n');
    const env = { AWS_ACCESS_KEY_ID: 'ENVIRONMENT', AWS_SECRET_ACCESS_KEY: 's', AWS_PROFILE: 'default' };
    const found = await used(env);
    expect(found).toEqual({
      ...{ verdict: 'ok', detail: 'environment (AWS_ACCESS_KEY_ID)', keys: ['ENVIRONMENT undefined'] },
    });
  });

  it.runIf(isFull)('EKS Pod Identity gives credentials for the token in its file', async () => {
    const { used, write } = await machine();
    const endpoint = kept(await containerEndpoint(() => 'pod token', hour('POD')));
    const file = await write('pod-token', 'pod token');
    const container = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${endpoint.url}/v1/credentials` };
    const found = await used({ ...container, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file });
    expect(found).toEqual(signedWith('container endpoint', 'POD'));
    expect(endpoint.asked).toEqual(['GET /v1/credentials']); // once for all calls of the doctor
  });

  it.runIf(isFull)('a container endpoint gives credentials for the token in the environment', async () => {
    const { used } = await machine();
    const endpoint = kept(await containerEndpoint(() => 'task token', hour('TASK')));
    const container = { AWS_CONTAINER_CREDENTIALS_FULL_URI: endpoint.url };
    const found = await used({ ...container, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'task token' });
    expect(found).toEqual(signedWith('container endpoint', 'TASK'));
  });

  it.runIf(isFull)('STS gives credentials for a web identity, such as a service account of EKS', async () => {
    const { used, write } = await machine();
    const form = { Action: 'AssumeRoleWithWebIdentity', WebIdentityToken: 'jwt', RoleArn: 'arn:aws:iam::1:role/pod' };
    const { url } = kept(await sts(form, hour('IRSA')));
    const file = await write('web-token', 'jwt');
    const identity = { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: form.RoleArn, AWS_REGION: 'eu-west-1' };
    expect(await used({ ...identity, AWS_ENDPOINT_URL_STS: url })).toEqual(signedWith('web identity', 'IRSA'));
  });

  it.runIf(isFull)('instance metadata gives credentials for a session token (IMDSv2)', async () => {
    const { used } = await machine();
    const metadata = kept(await instanceMetadata(hour('INSTANCE')));
    const instance = { AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url, AWS_EC2_METADATA_DISABLED: 'false' };
    expect(await used(instance)).toEqual(signedWith('instance metadata', 'INSTANCE'));
    expect(metadata.asked[0]).toBe('PUT /latest/api/token');
  });

  it.runIf(isFull)('IAM Identity Center gives a profile credentials for its SSO token', async () => {
    const { used, write } = await machine();
    const { url } = kept(await ssoPortal('login token', hour('SSO')));
    await write(
      '.aws/config',
      `[profile ops]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = operator\nregion = eu-west-1
[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n`,
    );
    const token = { accessToken: 'login token', expiresAt: new Date(Date.now() + 3_600_000).toISOString() };
    const name = createHash('sha1').update('corp').digest('hex');
    await write(`.aws/sso/cache/${name}.json`, JSON.stringify(token));
    const found = await used({ AWS_PROFILE: 'ops', AWS_ENDPOINT_URL_SSO: url });
    expect(found).toEqual(signedWith('profile ops (SSO)', 'SSO'));
  });

  it.runIf(isFull)('a program that the profile names prints credentials (credential_process)', async () => {
    const { used, write } = await machine();
    const keys = { Version: 1, AccessKeyId: 'PROCESS', SecretAccessKey: 's', SessionToken: 'token of PROCESS' };
    const program = await write('print-keys', JSON.stringify(keys));
    await write('.aws/config', `[default]\ncredential_process = cat ${program}\n`);
    expect(await used({})).toEqual(signedWith('profile default (credential_process)', 'PROCESS'));
  });

  it.runIf(isFull)('the role of a profile is assumed with the credentials of another profile', async () => {
    const { used, write } = await machine();
    const form = { Action: 'AssumeRole', RoleArn: 'arn:aws:iam::1:role/ops' };
    const { url } = kept(await sts(form, hour('ROLE')));
    await write('.aws/credentials', '[base]\naws_access_key_id = BASE\naws_secret_access_key = s\n');
    const role = `[profile ops]\nrole_arn = ${form.RoleArn}\nsource_profile = base\nregion = eu-west-1\n`;
    await write('.aws/config', role);
    const found = await used({ AWS_PROFILE: 'ops', AWS_ENDPOINT_URL_STS: url });
    expect(found).toEqual(signedWith('profile ops (role)', 'ROLE'));
  });

  it.runIf(isFull)('a profile named in the Holdfast configuration is the only source of credentials', async () => {
    const { home, used, write, seen, holdfast } = await machine();
    await write('.aws/credentials', '[ops]\naws_access_key_id = OPS\naws_secret_access_key = s\n');
    await mkdir(join(home, '.config/holdfast'), { recursive: true });
    const profiles = { ops: { awsProfile: 'ops' }, none: { awsProfile: 'none' } };
    await write('.config/holdfast/config.json', JSON.stringify({ default: 'ops', profiles }));
    const metadata = kept(await instanceMetadata(hour('INSTANCE')));
    const env = {
      ...{ AWS_ACCESS_KEY_ID: 'ENVIRONMENT', AWS_SECRET_ACCESS_KEY: 's' },
      ...{ AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url, AWS_EC2_METADATA_DISABLED: 'false' },
    };
    const detail = 'profile ops (keys)';
    expect(await used(env)).toEqual({ verdict: 'ok', detail, keys: ['OPS undefined'] });
    const { code, stderr } = await holdfast(['status'], { ...env, HOLDFAST_PROFILE: 'none' }).exited;
    expect(code).toBe(77);
    expect(stderr).toBe(
      'holdfast: no AWS credentials and no HOLDFAST_TOKEN: profile none: Could not resolve credentials using profile: [none] in configuration/credentials file(s)\n',
    );
    expect([seen, metadata.asked]).toEqual([[], []]);
  });
});

describe.concurrent('no credentials', () => {
  it('if no source is set up, the command exits with 77 and says why', async () => {
    const { holdfast } = await machine();
    const { code, stdout, stderr } = await holdfast(['run', 'k', '--', 'true']).exited;
    expect([code, stdout]).toEqual([77, '']);
    expect(stderr).toBe(
      `holdfast: no AWS credentials and no HOLDFAST_TOKEN: ${[
        'environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set',
        'profile default: Could not resolve credentials using profile: [default] in configuration/credentials file(s)',
        'web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are not set',
        'container endpoint: no AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI is set',
        'instance metadata: AWS_EC2_METADATA_DISABLED is set',
      ].join('; ')}\n`,
    );
  });

  it('if there are no credentials, the doctor exits with 77 without a call', async () => {
    const { holdfast, seen } = await machine();
    const { code, stdout } = await holdfast(['doctor']).exited;
    expect([code, seen]).toEqual([77, []]);
    expect(stdout).toMatch(/\nfailed {2}credentials: no AWS credentials and no HOLDFAST_TOKEN: environment: .*\n$/);
  });

  /** A secret in the answers of broken sources. A message must not contain it. */
  const CANARY = 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY';
  const broken = async () =>
    kept(
      await listen((_, response) => {
        response.end(`{"AccessKeyId": "${CANARY}", ${CANARY}`);
      }),
    );
  const token = { accessToken: CANARY, expiresAt: new Date(0).toISOString() };

  type SetUp = (at: Awaited<ReturnType<typeof machine>>) => Promise<Record<string, string>>;
  const faults: [string, SetUp, RegExp][] = [
    [
      'a container endpoint that answers no JSON',
      async () => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: (await broken()).url }),
      /; container endpoint: its answer cannot be read\n$/,
    ],
    [
      'a container endpoint without a listener',
      async () => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://127.0.0.1:1/x' }),
      /; container endpoint: .*ECONNREFUSED.*; instance metadata: not asked in a container\n$/,
    ],
    [
      'a web identity that STS refuses',
      async ({ write }) => ({
        ...{ AWS_WEB_IDENTITY_TOKEN_FILE: await write('t', CANARY), AWS_ROLE_ARN: 'arn:aws:iam::1:role/x' },
        AWS_ENDPOINT_URL_STS: kept(await sts({ RoleArn: 'other' }, hour('NEVER'))).url,
        AWS_REGION: 'eu-west-1',
      }),
      /; web identity: RoleArn is wrong\n$/,
    ],
    [
      'a credential_process that fails, and prints a secret',
      async ({ write }) => {
        await write('.aws/config', `[default]\ncredential_process = sh -c "echo ${CANARY} >&2; exit 3" ${CANARY}\n`);
        return {};
      },
      /; profile default: its credential_process failed; web identity: /,
    ],
    [
      'a login by SSO that has expired, behind which no other source is asked',
      async ({ write }) => {
        await write(
          '.aws/config',
          `[default]\nsso_start_url = https://corp.example/start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = r\n`,
        );
        const name = createHash('sha1').update('https://corp.example/start').digest('hex');
        await write(`.aws/sso/cache/${name}.json`, JSON.stringify(token));
        return {};
      },
      /; profile default: The SSO session associated with this profile has expired\. To refresh this SSO session run aws sso login with the corresponding profile\n$/,
    ],
    [
      'a login by `aws login` whose file is torn',
      async ({ home, write }) => {
        await write('.aws/config', '[default]\nlogin_session = me\n');
        await mkdir(join(home, '.aws/login/cache'), { recursive: true });
        const name = createHash('sha256').update('me').digest('hex');
        await write(`.aws/login/cache/${name}.json`, `{"accessToken": "${CANARY}", ${CANARY}`);
        return {};
      },
      /; profile default: its answer cannot be read\n$/,
    ],
  ];
  it.each(aFew(1, faults))(
    'after %s, the command exits with 77, and says why each source failed',
    async (_, setUp, expected) => {
      const at = await machine();
      const { code, stdout, stderr } = await at.holdfast(['status', '--timeout', '0'], await setUp(at)).exited;
      expect([code, stdout], stderr).toEqual([77, '']);
      expect(stderr).toMatch(/^holdfast: no AWS credentials and no HOLDFAST_TOKEN: environment: .*\n$/);
      expect(stderr).toMatch(expected);
      for (let at = 0; at + 8 <= CANARY.length; at++) expect(stderr).not.toContain(CANARY.slice(at, at + 8));
    },
  );
});

it('a command without its credentials program says which file is missing', async () => {
  const folder = await mkdtemp(join(cli.folder, 'alone-'));
  const alone = join(folder, 'holdfast.mjs');
  await copyFile(cli.file, alone);
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    HOLDFAST_ENDPOINT: 'https://api.example',
    AWS_REGION: 'eu-west-1',
  };
  const { code, stderr } = await promisify(execFile)(process.execPath, [alone, 'status'], { env }).catch(
    (error) => error,
  );
  expect(code).toBe(77);
  expect(stderr).toContain(`; ${join(folder, 'credentials.mjs')}, a part of this command, is missing\n`);
});

describe.concurrent('http to another machine', () => {
  const endpoint = 'http://api.example:8080/stage';
  const refused = `holdfast: the endpoint must be https, or be on this machine, not '${endpoint}': a token or a signature could be read on the way\n`;

  it.each(
    aFew<[string, Record<string, string>]>(1, [
      ['a token', { HOLDFAST_TOKEN: 'jwt' }],
      ['AWS keys of the environment', { AWS_ACCESS_KEY_ID: 'ID', AWS_SECRET_ACCESS_KEY: 's', AWS_REGION: 'eu-west-1' }],
      ['AWS keys that are not searched yet', { AWS_REGION: 'eu-west-1' }],
    ]),
  )('the command does not send anything over http to another machine with %s', async (_, env) => {
    const { home, holdfast, write } = await machine();
    await mkdir(join(home, '.config/holdfast'), { recursive: true });
    await write('.config/holdfast/config.json', JSON.stringify({ profiles: { far: { endpoint } } }));
    for (const args of [
      ['status', '--endpoint', endpoint],
      ['run', 'k', '--profile', 'far', '--', 'true'],
    ]) {
      const { code, stdout, stderr } = await holdfast(args, env).exited;
      expect([code, stdout]).toEqual([64, '']);
      expect(stderr).toContain(refused);
    }
    const doctor = await holdfast(['doctor', '--endpoint', endpoint], env).exited;
    expect([doctor.code, doctor.stdout]).toEqual([64, refused.replace('holdfast:', 'failed  configuration:')]);
  });
});

it('the command refuses to send a token over http to a name below localhost', async () => {
  const { holdfast } = await machine();
  const env = { HOLDFAST_TOKEN: 'jwt', HOLDFAST_ENDPOINT: 'http://abc.execute-api.localhost:1' };
  const { code, stderr } = await holdfast(['status'], env).exited;
  expect(code).toBe(64);
  expect(stderr).toContain(
    "the endpoint must be https, or be on this machine, not 'http://abc.execute-api.localhost:1/'",
  );
});

// These tests take real seconds.
(isFull ? describe.concurrent : describe.skip)('keys that expire are searched again', () => {
  it('credentials are fetched before they expire, and nothing waits for the new ones', async () => {
    const { holdfast: start, seen } = await machine();
    let [issued, hangs] = [0, false];
    // The credentials expire so soon that the command already fetches new ones.
    const endpoint = kept(
      await listen((_, response) => {
        if (hangs) return;
        const expiration = new Date(Date.now() + 200_000).toISOString();
        const keys = { AccessKeyId: `KEY${++issued}`, SecretAccessKey: 's', Token: 't', Expiration: expiration };
        response.end(JSON.stringify(keys));
      }),
    );
    const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: endpoint.url };
    const { exited } = start(['watch', 'renewed', '--interval', '0.2', '--until', 'held'], env);
    await until(() => new Set(seen.map(({ id }) => id)).size).toBeGreaterThan(2);
    hangs = true;
    const before = seen.length;
    await until(() => seen.length).toBeGreaterThan(before + 5);
    await using _ = await holdfast.acquire('renewed', { ttlSeconds: 600 });
    const startedAt = performance.now();
    expect((await exited).code).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(20_000); // a search may take 30 s
  });

  it('a request waits for new credentials if the old ones have expired', async () => {
    const { holdfast: start, seen } = await machine();
    let issued = 0;
    const keys = () => ({ id: `SHORT${++issued}`, expiresAt: Date.now() + 2000 });
    const { url } = kept(await containerEndpoint(() => 'task', keys));
    const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: url, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'task' };
    const { code } = await start(['run', 'expired', '--', 'sleep', '3'], env).exited;
    expect(code).toBe(0);
    expect(seen.map(({ path }) => path)).toEqual(['/v1/leases/acquire', '/v1/leases/release']);
    expect(seen.map(({ id }) => id)).toEqual(['SHORT1', `SHORT${issued}`]);
    expect(issued).toBeGreaterThan(1);
  });
});
