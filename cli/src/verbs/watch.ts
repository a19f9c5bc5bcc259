import { setTimeout as sleep } from 'node:timers/promises';
import { isHoldfastError } from '../../../client/src/errors.ts';
import type { AnswerOf } from '../../../client/src/transport.ts';
import { EXIT } from '../exit-codes.ts';
import { exitCodeOf, messageOf } from '../failure.ts';
import type { Verb } from '../verb.ts';
import { stateText } from './words.ts';

type Lease = Extract<AnswerOf<'readLeases'>, { expiresAt: unknown }>;

const UNTIL = ['held', 'free'] as const;

export const watch: Verb = {
  summary: 'print a line at each change of a lease',
  usage: 'KEY',
  words: [1, 1],
  noTimeout: true,
  options: {
    interval: { value: 'SECONDS', help: 'how often to look (1)' },
    until: { value: 'STATE', help: 'stop once somebody holds the lease, or nobody does', choices: UNTIL },
  },
  notes: 'A heartbeat is no change.',
  example: 'holdfast watch nightly-report --until free',
  async run({ arguments: args, output, connect, settings }) {
    const key = args.word(0);
    const pauseMs = (args.number('interval', { least: 0.1, most: 3600 }) ?? 1) * 1000;
    const until = args.text('until');
    const service = connect({ onRetry: undefined });
    let seen = '';
    for (let failed = false; ; ) {
      try {
        const lease = await service.readLease(key, {}, { timeoutMs: pauseMs });
        failed = false;
        const { state, holder, fence, waiting } = lease;
        const now = JSON.stringify([stateText(lease), holder, fence, waiting]);
        if (now !== seen)
          output.isJson ? output.json({ at: new Date().toISOString(), ...lease }) : output.line(lineOf(lease));
        seen = now;
        if (until && (state === 'held') === (until === 'held')) return 0;
      } catch (error) {
        if (!isHoldfastError(error) || exitCodeOf(error) !== EXIT.noAnswer) throw error;
        if (!failed) output.note(messageOf(error, settings().endpoint));
        failed = true;
      }
      await sleep(pauseMs);
    }
  },
};

function lineOf(lease: Lease): string {
  const { key, state, holder, fence, acquiredAt, expiresAt, waiting } = lease;
  const by = holder === null ? '' : ` by ${holder}`;
  const held = state === 'held' ? `, fence ${fence}, since ${acquiredAt}, until ${expiresAt}` : '';
  const queue = waiting > 0 ? `, ${waiting} in line` : '';
  return `${new Date().toISOString()}  ${key} is ${stateText(lease)}${state === 'free' ? '' : by}${held}${queue}`;
}
