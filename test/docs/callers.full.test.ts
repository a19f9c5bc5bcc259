import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startSignatureCheck } from '../support/emulators/signatures.ts';
import { has, languages } from '../support/programs/callers.ts';
import { PYTHON_CLIENT, python } from '../support/programs/python.ts';
import { startApi } from '../support/stack/api.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const CALLER = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'IQoJb3JpZ2luX2VjEXAMPLE==',
  region: 'eu-west-1',
};
const { handlers } = await leaseWorld({ clock: systemClock });
const api = await startApi(handlers);
const gateway = await startSignatureCheck(api.url, CALLER);
const holdfast = new Holdfast({ endpoint: api.url, holder: 'the other' });
afterAll(async () => {
  await gateway.stop();
  await api.stop();
});

const all = await languages();
const run = promisify(execFile);
const environment = (secretAccessKey = CALLER.secretAccessKey) => ({
  ...process.env,
  HOLDFAST_ENDPOINT: gateway.url,
  AWS_REGION: CALLER.region,
  AWS_ACCESS_KEY_ID: CALLER.accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_SESSION_TOKEN: CALLER.sessionToken,
});

const NOT_BUILT = ' (skipped: npm run verify -- callers builds it)';

describe('signed by their secret', () => {
  for (const { name, ready, start } of all)
    it.skipIf(!ready)(`the calls of docs/callers.md succeed from ${name}${ready ? '' : NOT_BUILT}`, async () => {
      const [command, ...args] = start;
      gateway.passed.length = 0;
      const { stdout } = await run(command, args, { env: environment() });
      expect(gateway.passed).toEqual(['acquire', 'heartbeat', 'release'].map((call) => `/v1/leases/${call}`));
      expect(stdout).toMatch(/true/);
    });

  for (const { name, ready, start } of all)
    it.skipIf(!ready)(`${name} of docs/callers.md fails with another secret, and for a held key`, async () => {
      const [command, ...args] = start;
      gateway.passed.length = 0;
      const outcome = (env: NodeJS.ProcessEnv) =>
        run(command, args, { env }).then(
          () => 'succeeded',
          (error: { code: number; stderr: string }) => error.stderr,
        );
      // API Gateway says it in another field than the service, which not every example reads.
      expect(await outcome(environment('another'))).not.toBe('succeeded');
      expect(gateway.passed).toEqual([]);
      await using _ = await holdfast.acquire('nightly-report');
      expect(await outcome(environment())).toContain('nightly-report is held by the other until');
      expect(gateway.passed).toEqual(['/v1/leases/acquire']);
    });
});

const signs = python !== undefined && (await has(python, '-c', 'import botocore'));

it.skipIf(!signs)('the client for Python signs with the credentials that it is given', async () => {
  const program = `import holdfast, os
from botocore.session import get_session
client = holdfast.Holdfast(os.environ["HOLDFAST_ENDPOINT"], credentials=get_session().get_credentials())
with client.lease("nightly-report") as lease: print(lease.fence)`;
  const play = (secret?: string) =>
    run(python ?? '', ['-c', program], { env: { ...environment(secret), ...PYTHON_CLIENT } });
  gateway.passed.length = 0;
  expect(Number((await play()).stdout)).toBeGreaterThan(0);
  expect(gateway.passed).toEqual(['/v1/leases/acquire', '/v1/leases/release']);
  await expect(play('another')).rejects.toThrow('holdfast.contract.Refused: Forbidden');
});
