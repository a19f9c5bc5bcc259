import { GetAccountSettingsCommand } from '@aws-sdk/client-lambda';
import { PARAMETERS } from '../infrastructure/parameters.ts';
import type { Aws } from './aws.ts';
import type { Values } from './values.ts';

/** The share of the account's concurrency that waiting calls may use without a warning. */
const WARNING_SHARE = 1 / 5;

/**
 * Warns if waiting calls could use so much of the account's concurrency that heartbeats and releases cannot run. A new account may have only 10.
 * @returns the warnings. None if AWS does not tell the concurrency, because a deployment can go on without knowing it
 */
export async function heldCallWarnings({ lambda }: Aws, values: Values): Promise<string[]> {
  const held = Number(values.maxHeldCalls ?? PARAMETERS.maxHeldCalls?.default);
  const settings = await lambda.send(new GetAccountSettingsCommand({})).catch(() => undefined);
  const concurrency = settings?.AccountLimit?.ConcurrentExecutions;
  if (concurrency === undefined) return [];
  const advised = Math.floor(concurrency * WARNING_SHARE);
  return held <= advised
    ? []
    : [`${tooMany(held, concurrency)} Ask AWS for a higher concurrency, or add --param maxHeldCalls=${advised}`];
}

const tooMany = (held: number, concurrency: number): string =>
  `maxHeldCalls is ${held}, and Lambda runs at most ${concurrency} calls at once in this account and region: waiting calls could keep ` +
  'heartbeats and releases from running.';
