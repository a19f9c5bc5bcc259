import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../shared/surroundings/clock.ts';
import { startSignatureCheck } from '../support/emulators/signatures.ts';
import { languages } from '../support/programs/callers.ts';
import { startApi } from '../support/stack/api.ts';
import { leaseWorld } from '../support/worlds/leases.ts';

const caller = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'IQoJb3JpZ2luX2VjEXAMPLE==',
  region: 'eu-west-1',
};
const all = await languages();
const { handlers } = await leaseWorld({ clock: systemClock });
const api = await startApi(handlers);
const gateway = await startSignatureCheck(api.url, caller);
afterAll(async () => {
  await gateway.stop();
  await api.stop();
});

const environment = (secretAccessKey = caller.secretAccessKey) => ({
  ...process.env,
  API: gateway.url,
  AWS_REGION: caller.region,
  AWS_ACCESS_KEY_ID: caller.accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_SESSION_TOKEN: caller.sessionToken,
});

describe('docs/callers.md: signed by their secret, acquire, heartbeat and release get through from', () => {
  for (const { name, ready, start } of all)
    it.skipIf(!ready)(
      `the signed calls of docs/callers.md succeed from ${name}${ready ? '' : ' (skipped: npm run verify -- callers builds it)'}`,
      async () => {
        const [command, ...args] = start;
        gateway.passed.length = 0;
        const { stdout } = await promisify(execFile)(command, args, { env: environment() });
        expect(gateway.passed).toEqual(['acquire', 'heartbeat', 'release'].map((call) => `/v1/leases/${call}`));
        expect(stdout).toMatch(/true/);
      },
    );

  it('the signed calls of docs/callers.md fail with another secret', async () => {
    const [command = '', ...args] = all[0]?.start ?? [];
    gateway.passed.length = 0;
    const { stdout } = await promisify(execFile)(command, args, { env: environment('another') });
    expect(stdout).toContain('Forbidden');
    expect(gateway.passed).toEqual([]);
  });
});
