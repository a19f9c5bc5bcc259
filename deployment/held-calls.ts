import { GetAccountSettingsCommand } from '@aws-sdk/client-lambda';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import type { Aws } from './aws.ts';
import type { Values } from './values.ts';

/** The part of the account's concurrency that calls that wait may hold without a warning. */
const SHARE = 1 / 5;

/**
 * Warns if calls that wait could occupy so much of the account's concurrency that heartbeats and releases find none. A new account may have 10
 * in all.
 * @returns the warnings. None if AWS does not say the concurrency, because a deployment goes on without it
 */
export async function warningsOfHeldCalls({ lambda }: Aws, values: Values): Promise<string[]> {
  const held = Number(values.maxHeldCalls ?? PARAMETERS.maxHeldCalls?.default);
  const settings = await lambda.send(new GetAccountSettingsCommand({})).catch(() => undefined);
  const concurrency = settings?.AccountLimit?.ConcurrentExecutions;
  if (concurrency === undefined) return [];
  const advised = Math.floor(concurrency * SHARE);
  return held <= advised
    ? []
    : [`${tooMany(held, concurrency)} Ask AWS for more, or add --param maxHeldCalls=${advised}`];
}

const tooMany = (held: number, concurrency: number): string =>
  `maxHeldCalls is ${held}, and Lambda runs at most ${concurrency} calls at once in this account and region: calls that wait could keep ` +
  'heartbeats and releases from running.';
