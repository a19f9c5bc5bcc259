import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import type { LargeCall } from './large-values.ts';

const MAX_MIB = 50;

/** Nothing of it gets so far as to be sent: an address where nobody answers would show as Unavailable. */
const NOWHERE = 'http://127.0.0.1:9';

async function callsOf(sizeMiB: number, only: string[]): Promise<LargeCall[]> {
  const script = join(import.meta.dirname, 'large-values.ts');
  const flags = ['--expose-gc', '--max-semi-space-size=8', '--no-warnings'];
  const env = {
    ...process.env,
    AWS_ENDPOINT_URL_DYNAMODB: NOWHERE,
    AWS_ENDPOINT_URL_S3: NOWHERE,
    AWS_ENDPOINT_URL_SFN: NOWHERE,
  };
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, script, String(sizeMiB), ...only], {
    env,
    maxBuffer: 64 * 1024 ** 2,
  });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

it.each([
  { sizeMiB: 2, only: [] },
  { sizeMiB: 5.5, only: ['commit'] }, // which takes as much as Lambda does
])(
  '$sizeMiB MiB of any shape are refused by every function, in little memory',
  { timeout: 300_000 },
  async ({ sizeMiB, only }) => {
    const calls = await callsOf(sizeMiB, only);
    expect(calls.length).toBeGreaterThan(only.length === 0 ? 2000 : 150);
    const refused = ({ outcome, status = 0 }: LargeCall) =>
      ['InvalidRequest', 'PayloadTooLarge'].includes(outcome) && status < 500;
    expect(calls.filter((call) => !refused(call))).toEqual([]);
    expect(calls.filter(({ answerBytes }) => answerBytes > 10_000)).toEqual([]);
    const grew = calls.filter(({ grewMiB }) => grewMiB > 1);
    expect(
      grew.reduce((sum, { grewMiB }) => sum + grewMiB, 0),
      JSON.stringify(grew, null, 1),
    ).toBeLessThan(MAX_MIB);
  },
);
