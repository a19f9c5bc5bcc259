import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { columnsOf, fitted, folded, shortened } from '../../cli/src/fit.ts';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { builtCli } from '../support/programs/cli.ts';
import { until } from '../support/time/until.ts';
import { wholeApi } from '../support/worlds/client-worlds.ts';

const [api, cli] = await Promise.all([wholeApi(), builtCli()]);
const holdfast = new Holdfast({ endpoint: api.url, holder: 'the other' });
const env = { HOLDFAST_ENDPOINT: api.url, PATH: process.env.PATH ?? '', HOME: cli.folder, TERM: 'xterm' };
const call = (...args: string[]) => cli.call(args, { env });

/** The output at a terminal of 80 by 24, which util-linux's script makes. */
async function atTerminal(command: string, more: Record<string, string> = { NO_COLOR: '1' }): Promise<string[]> {
  const typed = `stty rows 24 cols 80; '${process.execPath}' '${cli.file}' ${command}`;
  const { stdout } = await promisify(execFile)('script', ['-qec', typed, '/dev/null'], { env: { ...env, ...more } });
  return stdout.trimEnd().split('\r\n');
}

const TENANT = 'tenants/0a6f7c1e-1f2d-4c3b-9a8e-7d6c5b4a3f2e/import';
const ROLE = 'arn:aws:sts::123456789012:assumed-role/holdfast-export-worker-prod/i-0abcd1234ef56789';
const LONG = `${TENANT}-120`;

/** Runs that wait for the key LONG. */
const waiting: ReturnType<typeof cli.start>[] = [];

beforeAll(async () => {
  await holdfast.acquire(LONG, { holder: `${ROLE}0`, ttlSeconds: 600, data: { job: 'nightly', run: ROLE } });
  await holdfast.acquire(`${TENANT}-121`, { holder: `${ROLE}1`, ttlSeconds: 600 });
  await holdfast.acquire('äöü/日本語/😀 emoji key', { holder: '日本語の名前', ttlSeconds: 600 });
  await holdfast.call('acquire', { key: 'left behind', holder: 'crashed', ttlSeconds: 2 });
  for (const at of [1, 2, 3]) await holdfast.acquire('render', { limit: 5, holder: `${ROLE}${at}`, ttlSeconds: 600 });
  await holdfast.once(LONG, { slot: '2026-11-29' }, () => 1);
  await holdfast.rateReserve({ key: LONG, holder: ROLE, rates: [{ limit: 1, per: '1h' }] });
  for (const holder of ['etl@ip-10-0-3-117/20117', 'etl@ip-10-0-3-118/20118']) {
    waiting.push(cli.start(['run', LONG, '--wait', '1h', '--holder', holder, '--', 'true'], { env }));
    await until(async () => (await holdfast.readLease(LONG)).waiting).toBe(waiting.length);
  }
  await setTimeout(2500);
  await holdfast.report();
}, 30_000);
afterAll(async () => {
  for (const { child } of waiting) child.kill('SIGTERM');
  await Promise.all(waiting.map(({ exited }) => exited));
  await Promise.all([api.stop(), cli.remove()]);
});

describe.runIf(existsSync('/usr/bin/script'))('a terminal of 80 columns', () => {
  it.each([
    'status',
    `queue '${LONG}'`,
    'queue render',
    'expired',
    'clean --quiet',
    'status --kind once',
    'status --kind rate',
  ])('no line of %s is wider than the terminal', async (command) => {
    const lines = await atTerminal(command);
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines)
      expect([...line.replace(/[日本語の名前😀]/gu, '__')].length, line).toBeLessThanOrEqual(80);
  });

  it('shortened keys still show where they differ, and a pipe gets them whole', async () => {
    const keys = (await atTerminal('status tenants/')).slice(1).map((line) => line.split(/ {2,}/)[0]);
    expect(keys).toEqual([expect.stringMatching(/^tenants.*….*-120$/), expect.stringMatching(/^tenants.*….*-121$/)]);
    const piped = (await call('status', 'tenants/')).stdout;
    for (const whole of [`${TENANT}-121`, `${ROLE}1`, 'FENCE', 'HELD']) expect(piped).toContain(whole);
  });

  it('an expired key stands out in colour', async () => {
    expect((await atTerminal("status 'left behind'", {})).join()).toContain('\u001b[31mexpired\u001b[39m ');
  });

  it('a ticket that the terminal shortens still identifies its waiter', async () => {
    const shown = async () => (await atTerminal(`queue '${LONG}'`)).map((line) => /\d+…\S+$/.exec(line)?.[0]);
    const [, second] = (await shown()).filter((ticket) => ticket !== undefined);
    const { waiters = [] } = await holdfast.readLease(LONG, { waiters: true });
    expect(await call('next', LONG, second ?? '')).toMatchObject({ code: 0, stdout: 'the ticket is next\n' });
    const end = waiters[1]?.ticket.slice(-8) ?? '';
    expect(await call('cancel', LONG, end)).toMatchObject({ code: 0, stdout: 'the ticket is out of the line\n' });
    expect(await call('cancel', LONG, end)).toMatchObject({ code: 1, stderr: expect.stringContaining('no waiter') });
    expect((await call('cancel', LONG, '1')).code).toBe(64);
  });
});

it('a row fits a terminal of any width', () => {
  const head = ['AT', 'EVENT', 'HOLDER', 'FENCE', 'BY'];
  for (let most = 1; most < 220; most++) {
    const widths = fitted(head, [20, 15, 60, 13, 80], most).filter((wide) => wide > 0);
    expect(widths.reduce((sum, wide) => sum + wide + 2, -2)).toBeLessThanOrEqual(most);
  }
  expect(fitted(['PLACE', 'HOLDER', 'STATE', 'TICKET'], [5, 22, 21, 52], 71)).toEqual([5, 21, 21, 18]);
  expect(fitted(head, [20, 15, 60, 13, 80], 196)).toEqual([20, 15, 60, 13, 80]);
  expect(fitted(head, [20, 15, 60, 13, 80], 195)).toEqual([20, 15, 60, 13, 79]);
});

it.each([
  ['tenants/0a6f7c1e/import-120', 19, 'tenants/0…mport-120'],
  ['日本語日本語', 7, '日…本語'],
  ['e\u0301e\u0301e\u0301', 3, 'e\u0301e\u0301e\u0301'],
  ['⌚⌚', 4, '⌚⌚'],
  ['abc', 1, '…'],
])('%s in %d columns is %s', (text, most, expected) => {
  expect(shortened(text, most)).toBe(expected);
  expect(columnsOf(expected)).toBeLessThanOrEqual(most);
});

it('a long value is folded below itself, and loses nothing', () => {
  expect(folded('日本語abc', 4)).toEqual(['日本', '語ab', 'c']);
  expect(folded('', 4)).toEqual(['']);
});

it('a column of tickets keeps its last six letters while other columns can shrink', () => {
  const [, , ticket = 0] = fitted(['#', 'WAITS', 'TICKET'], [3, 30, 56], 30);
  expect(ticket).toBeGreaterThanOrEqual(13);
  expect(shortened('001767225601696-b586c8f3-2657-421b-80f8-b1229c6f60ac', ticket)).toMatch(/…6f60ac$/);
});
