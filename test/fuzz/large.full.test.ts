import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';
import { SHAPES } from './functions.ts';
import type { LargeCall, Sent } from './large-values.ts';

const MAX_MIB = 50;

/** An address without a server. If a function sent such a value, it would answer Unavailable. */
const NOWHERE = 'http://127.0.0.1:9';

async function callsOf(sent: Sent): Promise<LargeCall[]> {
  const { functions } = inject('service');
  const script = join(import.meta.dirname, 'large-values.ts');
  const flags = ['--expose-gc', '--max-semi-space-size=8', '--no-warnings'];
  const env = {
    ...process.env,
    AWS_ENDPOINT_URL_DYNAMODB: NOWHERE,
    AWS_ENDPOINT_URL_S3: NOWHERE,
    AWS_ENDPOINT_URL_SFN: NOWHERE,
  };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...flags, script, JSON.stringify({ functions, ...sent })],
    {
      env,
      maxBuffer: 64 * 1024 ** 2,
    },
  );
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const SENT: Sent[] = [
  { sizeMiB: 2, shapes: Object.keys(SHAPES), only: [] },
  { sizeMiB: 5.5, shapes: Object.keys(SHAPES), only: ['commit'] }, // which takes as much as Lambda does
];

it.each(SENT)('every function refuses $sizeMiB MiB of $shapes in little memory', { timeout: 300_000 }, async (sent) => {
  const { shapes, only } = sent;
  const calls = await callsOf(sent);
  expect(shapes.filter((name) => !calls.some(({ shape }) => shape === name))).toEqual([]);
  expect(calls.length).toBeGreaterThan((only.length === 0 ? 130 : 10) * shapes.length);
  const refused = ({ outcome, status = 0 }: LargeCall) =>
    ['InvalidRequest', 'PayloadTooLarge'].includes(outcome) && status < 500;
  expect(calls.filter((call) => !refused(call))).toEqual([]);
  expect(calls.filter(({ answerBytes }) => answerBytes > 10_000)).toEqual([]);
  const grew = calls.filter(({ grewMiB }) => grewMiB > 1);
  expect(
    grew.reduce((sum, { grewMiB }) => sum + grewMiB, 0),
    JSON.stringify(grew, null, 1),
  ).toBeLessThan(MAX_MIB);
});
