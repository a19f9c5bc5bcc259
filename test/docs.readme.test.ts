import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../shared/clock.ts';
import { startApi } from './support/api.ts';
import { leaseWorld } from './support/leases.ts';

const bash = promisify(execFile);
const readme = await readFile('README.md', 'utf8');

/** Command and answer of each console block. */
const examples = [...readme.matchAll(/```console\n\$ (.*)\n(.*)\n```/g)].map(([, command = '', answer = '']) => ({
  command,
  answer: JSON.parse(answer),
}));

const { handlers } = await leaseWorld({ clock: systemClock });
const { url, stop } = await startApi(handlers);
afterAll(stop);

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const VARIES = ['fence', 'acquiredAt', 'expiresAt', 'remainingMs', 'retryAfterMs', 'traceId', 'leaseId', 'version'];

/** What varies from run to run, replaced by its kind. */
const shape = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (name, inner) => (VARIES.includes(name) && inner !== null ? typeof inner : inner)));

describe('the README', () => {
  it('shows the answers that its commands give', async () => {
    expect(examples).toHaveLength(5);
    let leaseId = '';
    for (const { command, answer } of examples) {
      const here = command.replace('http://127.0.0.1:3000', url).replace(UUID, leaseId);
      const { stdout } = await bash('bash', ['-c', here]);
      const given = JSON.parse(stdout);
      expect(shape(given), command).toEqual(shape(answer));
      leaseId ||= given.leaseId;
    }
  });

  it('names every error that the code knows, with its status', async () => {
    const source = await readFile('shared/errors.ts', 'utf8');
    const known = [...source.matchAll(/^ {2}(\w+): \{ status: (\d+),/gm)].map(
      ([, code, status]) => `${code} ${status}`,
    );
    const told = [...readme.matchAll(/^\| `([A-Z]\w+)` \| (\d{3}) \|/gm)].map(
      ([, code, status]) => `${code} ${status}`,
    );
    expect(known.length).toBeGreaterThan(0);
    expect(told.sort()).toEqual(known.sort());
  });

  it('names every parameter of serverless.yml', async () => {
    const yml = await readFile('serverless.yml', 'utf8');
    for (const [, name = ''] of yml.matchAll(/\$\{param:(\w+)/g)) expect(readme).toContain(`\`${name}\``);
  });
});
