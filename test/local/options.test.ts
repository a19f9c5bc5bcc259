import { execFile } from 'node:child_process';
import { expect, it } from 'vitest';
import { readOptions } from '../../local/options.ts';
import { aFew } from '../support/time/rounds.ts';

const read = (...args: string[]) =>
  readOptions({ seed: { type: 'string' }, only: { type: 'string', multiple: true, default: [] } }, args);

it('unknown options, and options without their value, are named in one line', () => {
  expect(() => read('--sed', '1')).toThrow(/^Unknown option '--sed'$/);
  expect(() => read('--seed')).toThrow(/^Option '--seed <value>' argument missing$/);
  expect(() => read('--seed', '-1')).toThrow(/^Option '--seed' argument is ambiguous\.$/);
});

it('a numeric option must be a number within its bounds', () => {
  const number = (text: string) => read('--seed', text).number('seed', { min: 1, max: 9, whole: true });
  expect(number('9')).toBe(9);
  expect(read().number('seed', { min: 1 })).toBeUndefined();
  expect(read('--seed', '0.5').number('seed', { min: 0 })).toBe(0.5);
  for (const text of ['', 'x', '0', '10', '1.5', '0x1', 'Infinity', '1e0'])
    expect(() => number(text), text).toThrow(`--seed must be a whole number from 1 to 9, not '${text}'`);
  expect(() => read('--seed', '99999999999999999999').number('seed', { min: 0, whole: true })).toThrow('--seed');
});

it.each(
  aFew(1, [
    [
      'faults',
      '--only',
      'lease',
      "--only must be one of leases, commits, nameservice, queue, permits, expiry, patience, once, redrives, rates, clients, not 'lease'",
    ],
    ['faults', '--histories', '0', "--histories must be a whole number of at least 1, not '0'"],
    ['mutations', '--only', 'no such rule', "no mutation has 'no such rule' in its name"],
    ['mutations', '--some', '0', "--some must be a whole number of at least 1, not '0'"],
  ] as const),
)('npm run verify -- %s %s %s fails without playing a round', async (command, option, value, message) => {
  const run = await new Promise((resolve) =>
    execFile(process.execPath, ['verification/run.ts', command, option, value], (error, stdout, stderr) =>
      resolve([error?.code, stdout, stderr]),
    ),
  );
  expect(run).toEqual([2, '', `npm run verify -- ${command}: ${message}\n`]);
});

it('a check that does not exist is refused, and the checks are listed', async () => {
  const run = await new Promise<{ code: unknown; stderr: string }>((resolve) =>
    execFile(process.execPath, ['verification/run.ts', 'fault'], (error, _, stderr) =>
      resolve({ code: error?.code, stderr }),
    ),
  );
  expect(run.code).toBe(2);
  expect(run.stderr).toMatch(/^there is no check 'fault'\n[\s\S]*\n {2}faults /);
});
