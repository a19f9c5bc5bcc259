import { setTimeout as sleep } from 'node:timers/promises';
import { isHoldfastError } from '../../../client/src/errors.ts';
import { EXIT } from '../exit-codes.ts';
import { exitCodeOf, messageOf } from '../failure.ts';
import type { ReadKey } from '../service.ts';
import type { Verb } from '../verb.ts';
import { NO_RECORD, nameOf, stateText, untilEnd, usedText } from './words.ts';

const UNTIL = ['held', 'free'] as const;

export const watch: Verb = {
  summary: 'print a line at each change of a lease or a pool',
  usage: 'KEY',
  words: [1, 1],
  takesKey: true,
  noTimeout: true,
  options: {
    interval: { value: 'DURATION', help: 'how often to look (1s)' },
    until: { value: 'STATE', help: 'stop when the key has a holder, or has no holder', choices: UNTIL },
  },
  notes: 'A heartbeat is no change.',
  example: 'holdfast watch nightly-report --until free',
  async run({ arguments: args, output, connect, settings }) {
    const key = args.word(0);
    const pauseMs = (args.seconds('interval', { least: 0.1, most: 3600 }) ?? 1) * 1000;
    const until = args.text('until');
    const service = connect({ onRetry: undefined });
    let seen = '';
    for (let failed = false; ; ) {
      try {
        const read = await service.readKey(key, {}, { timeoutMs: pauseMs });
        failed = false;
        const now = fingerprint(read);
        const at = new Date().toISOString();
        if (now !== seen) output.isJson ? output.json({ at, ...read }) : output.line(`${at}  ${lineOf(read)}`);
        seen = now;
        const isHeld = holdersOf(read).some(({ state }) => state === 'held');
        if (until && isHeld === (until === 'held')) return 0;
      } catch (error) {
        if (!isHoldfastError(error) || exitCodeOf(error) !== EXIT.noAnswer) throw error;
        if (!failed) output.note(messageOf(error, settings().endpoint));
        failed = true;
      }
      await sleep(pauseMs);
    }
  },
};

const holdersOf = (read: ReadKey) => (read.kind === 'pool' ? read.holders : [read]);

const fingerprint = (read: ReadKey): string => {
  const holders = holdersOf(read).map((one) => [stateText(one), one.holder, one.fence]);
  const record = read.kind === 'pool' ? usedText(read) : read.hasRecord;
  return JSON.stringify([read.kind, read.waiting, record, holders]);
};

function lineOf(read: ReadKey): string {
  const line = read.waiting > 0 ? `, ${read.waiting} in line` : '';
  if (read.kind === 'pool') return `${read.key} is a pool, in use: ${usedText(read)}${byWhom(read.holders)}${line}`;
  const { key, state, holder, fence, acquiredAt, expiresAt } = read;
  if (!read.hasRecord) return `${key}: ${NO_RECORD}${line}`;
  const by = holder === null ? '' : ` by ${nameOf(holder)}`;
  const held = state === 'held' ? `, fence ${fence}, since ${acquiredAt},${untilEnd(expiresAt)}` : '';
  return `${key} is ${stateText(read)}${state === 'free' ? '' : by}${held}${line}`;
}

/** The holders whose names are printed. */
const MOST_NAMED = 10;

function byWhom(holders: { holder: string; state: string; ending: boolean }[]): string {
  if (holders.length === 0) return '';
  const named = holders
    .slice(0, MOST_NAMED)
    .map((one) => (stateText(one) === 'held' ? nameOf(one.holder) : `${nameOf(one.holder)} (${stateText(one)})`));
  const more = holders.length > MOST_NAMED ? ` and ${holders.length - MOST_NAMED} more` : '';
  return ` by ${named.join(', ')}${more}`;
}
