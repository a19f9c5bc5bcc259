import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../shared/clock.ts';
import { publishInput } from '../shared/nameservice/inputs.ts';
import { startApi } from './support/api.ts';
import { nameserviceWorld } from './support/nameservice.ts';

const bash = promisify(execFile);
const guide = await readFile('docs/nameservice.md', 'utf8');

/** Command and answer of each console block. */
const examples = [...guide.matchAll(/```console\n\$ (.*)\n(.*)\n```/g)].map(([, command = '', answer = '']) => ({
  command,
  answer: JSON.parse(answer),
}));

const { handlers } = await nameserviceWorld({ clock: systemClock });
const { url, stop } = await startApi(handlers);
afterAll(stop);

/** What varies from run to run, replaced by its kind. */
const shape = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (name, inner) => (['updatedAt', 'traceId'].includes(name) ? typeof inner : inner)));

describe('docs/nameservice.md', () => {
  it('shows the answers that its commands give', async () => {
    expect(examples.length).toBeGreaterThan(15);
    for (const { command, answer } of examples) {
      const { stdout } = await bash('bash', ['-c', command.replace('http://127.0.0.1:3000', url)]);
      expect(shape(JSON.parse(stdout)), command).toEqual(shape(answer));
    }
  });

  it('lists every operation with its fields', () => {
    const told = [...guide.matchAll(/^\| `(\w+)` \|([^|]*)\|/gm)].map(([, op, fields = '']) => [
      op,
      [...fields.replace(/\([^)]*\)/g, '').matchAll(/`(\w+)`/g)].map(([, field]) => field).sort(),
    ]);
    for (const { def } of publishInput().def.options) {
      const { op, alias, requestId, ...fields } = def.shape;
      expect(told).toContainEqual([op.def.values[0], Object.keys(fields).sort()]);
      expect([alias, requestId]).not.toContain(undefined);
    }
  });
});
