import { setTimeout as sleep } from 'node:timers/promises';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import { EXIT } from '../exit-codes.ts';
import { exitCodeOf, messageOf } from '../failure.ts';
import type { Key } from '../service.ts';
import type { Verb } from '../verb.ts';
import { capText, holderText, isShared, NO_RECORD, nameOf, stateText, untilEnd, usedText } from './texts.ts';

const UNTIL = ['held', 'free'] as const;

export const watch: Verb = {
  summary: 'print a line at each change of a key',
  usage: 'KEY',
  words: [1, 1],
  takesKey: true,
  noTimeout: true,
  options: {
    interval: { value: 'DURATION', help: 'how often to read the key (1s)' },
    until: { value: 'STATE', help: 'stop when the key has a holder, or has no holder', choices: UNTIL },
    timeout: { value: 'DURATION', help: 'how long to watch (forever)' },
  },
  notes:
    'A heartbeat does not count as a change. After --timeout the exit code is 75, or 69 if the service does not answer.',
  example: 'holdfast watch nightly-report --until free',
  async run({ arguments: args, output, connect, settings }) {
    const key = args.word(0);
    const pauseMs = (args.seconds('interval', { min: 0.1, max: 3600 }) ?? 1) * 1000;
    const until = args.text('until');
    const service = connect({ onRetry: undefined });
    const end = performance.now() + (args.seconds('timeout', { min: 0 }) ?? Number.POSITIVE_INFINITY) * 1000;
    let seen = '';
    for (let failed = false; ; ) {
      try {
        const read = await service.readKey(key, {}, { timeoutMs: pauseMs });
        failed = false;
        const now = fingerprint(read);
        const at = new Date().toISOString();
        if (now !== seen) output.isJson ? output.json({ at, ...read }) : output.line(`${at}  ${lineOf(read)}`);
        seen = now;
        if (until && (read.state === 'held') === (until === 'held')) return 0;
      } catch (error) {
        if (!isHoldfastError(error) || exitCodeOf(error) !== EXIT.noAnswer) throw error;
        if (!failed) output.note(messageOf(error, settings().endpoint));
        failed = true;
      }
      const leftMs = end - performance.now();
      if (leftMs <= 0) return failed ? EXIT.noAnswer : EXIT.held;
      await sleep(Math.min(pauseMs, leftMs));
    }
  },
};

const fingerprint = (read: Key): string => {
  const shown = (isShared(read) ? read.holders : [read]).map((one) => [stateText(one), one.holder, one.fence]);
  return JSON.stringify([read.hasRecord, read.waiting, usedText(read), read.cap?.since, shown]);
};

function lineOf(read: Key): string {
  const { key, state, holder, fence, acquiredAt, expiresAt, waiting } = read;
  const line = `${waiting > 0 ? `, ${waiting} in line` : ''}${read.cap ? `, ${capText(read.cap)}` : ''}`;
  if (!read.hasRecord) return `${key}: ${NO_RECORD}${line}`;
  if (isShared(read)) return `${key} is ${state} by ${namesOf(read.holders)}, in use: ${usedText(read)}${line}`;
  const by = holder === null ? '' : ` by ${nameOf(holder)}`;
  const held = state === 'held' ? `, fence ${fence}, since ${acquiredAt},${untilEnd(expiresAt)}` : '';
  return `${key} is ${stateText(read)}${by}${held}${line}`;
}

/** How many holders are named at most. */
const MAX_NAMED = 10;

function namesOf(holders: Key['holders']): string {
  const named = holders
    .slice(0, MAX_NAMED)
    .map((one) => (stateText(one) === 'held' ? holderText(one) : `${holderText(one)} (${stateText(one)})`));
  const more = holders.length > MAX_NAMED ? ` and ${holders.length - MAX_NAMED} more` : '';
  return `${named.join(', ')}${more}`;
}
