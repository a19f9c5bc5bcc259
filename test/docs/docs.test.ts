import { readFile } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../shared/clock.ts';
import { publishInput } from '../../shared/nameservice/inputs.ts';
import { startApi } from '../support/api.ts';
import { commitWorld } from '../support/commits.ts';
import { runExamples } from '../support/examples.ts';
import { expiryWorld } from '../support/expiry.ts';
import { leaseWorld } from '../support/leases.ts';
import { nameserviceWorld } from '../support/nameservice.ts';

let stop = async () => {};
afterEach(() => stop());

/** The document on expired records says that so much time has passed. */
const twoHoursOn = { ...systemClock, now: () => systemClock.now() + 7_200_000 };

/** Everything that a fresh `npm start` serves. */
async function freshApi(): Promise<string> {
  const clock = systemClock;
  const [leases, commits, names] = await Promise.all([
    leaseWorld({ clock }),
    commitWorld({ clock }),
    nameserviceWorld({ clock }),
  ]);
  const tables = { leasesTable: leases.table, commitsTable: commits.table, nameserviceTable: names.table };
  const places = { ...tables, waitersTable: undefined, bucket: commits.bucket };
  const expired = await expiryWorld({ clock: twoHoursOn, places });
  const handlers = { ...leases.handlers, ...commits.handlers, ...names.handlers, ...expired.handlers() };
  const api = await startApi(handlers);
  stop = api.stop;
  return api.url;
}

const readme = await readFile('README.md', 'utf8');
const nameserviceGuide = await readFile('docs/nameservice.md', 'utf8');

describe('the commands give the answers that are written below them in', () => {
  it.each([
    ['README.md', 20],
    ['docs/commits.md', 13],
    ['docs/nameservice.md', 15],
    ['docs/expiry.md', 6],
  ])('%s', async (file, least) => {
    const count = await runExamples(await readFile(file, 'utf8'), await freshApi(), ['LICENSE']);
    expect(count).toBeGreaterThanOrEqual(least);
  });
});

describe('the README', () => {
  it('names every error that the code knows, with its status', async () => {
    const source = await readFile('shared/errors.ts', 'utf8');
    const pairs = (text: string, pattern: RegExp) =>
      [...text.matchAll(pattern)].map(([, code, status]) => `${code} ${status}`).sort();
    const known = pairs(source, /^ {2}(\w+): \{ status: (\d+),/gm);
    expect(known.length).toBeGreaterThan(0);
    expect(pairs(readme, /^\| `([A-Z]\w+)` \| (\d{3}) \|/gm)).toEqual(known);
  });

  it('names every parameter and every route of serverless.yml', async () => {
    const yml = await readFile('serverless.yml', 'utf8');
    for (const [, name = ''] of yml.matchAll(/\$\{param:(\w+)/g)) expect(readme).toContain(`\`${name}\``);
    for (const [, method, path] of yml.matchAll(/method: (\w+)\n +path: (\S+)/g))
      expect(readme).toContain(`| \`${method} ${path}`);
  });
});

describe('docs/nameservice.md', () => {
  it('lists every operation with its fields', () => {
    const told = [...nameserviceGuide.matchAll(/^\| `(\w+)` \|([^|]*)\|/gm)].map(([, op, fields = '']) => [
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
