import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { environment, REGION, run } from './support/aws.ts';

/** The emulator is on this machine, under the names of its APIs too. */
const RESOLVE = `
  import dns from 'node:dns';
  const { lookup } = dns;
  dns.lookup = (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest);
`;

const NAME = `holdfast-${manifest.version}`;

it('deploys from an empty folder with the release alone, and takes a lease, in three commands', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-empty-'));
  try {
    await cp(join('release', NAME), join(folder, NAME), { recursive: true });
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(RESOLVE)}`;
    const shell = { cwd: folder, env: { ...environment(), AWS_REGION: REGION, NODE_OPTIONS } };
    const command = `${process.execPath} ${NAME}/holdfast.mjs`;
    const deployed = await run('sh', ['-c', `${command} deploy --stage three --yes`], shell);
    expect(deployed.exitCode, deployed.output).toBe(0);
    const [, endpoint] = deployed.output.match(/^ApiUrl (\S+)$/m) ?? [];
    const taken = await run(
      'sh',
      ['-c', `export HOLDFAST_ENDPOINT='${endpoint}'; ${command} run nightly -- sh -c 'echo under a lease'`],
      shell,
    );
    expect(taken.output).toContain('under a lease');
    expect(taken.exitCode).toBe(0);
    // Where the answer of the release was too late for the command, it lands all the same.
    await expect
      .poll(
        async () => {
          const { output } = await run('sh', ['-c', `HOLDFAST_ENDPOINT='${endpoint}' ${command} status --json`], shell);
          return JSON.parse(output);
        },
        { timeout: 300_000, interval: 1000 },
      )
      .toMatchObject({ key: 'nightly', state: 'released' });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
