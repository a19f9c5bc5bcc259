import type { Verb } from '../verb.ts';
import { stateText, untilText } from './words.ts';

const STATES = ['held', 'expired', 'released', 'free'] as const;

export const status: Verb = {
  summary: 'list who holds which lease',
  usage: '[PREFIX]',
  words: [0, 1],
  options: {
    state: { value: 'STATE', help: 'only leases in this state', choices: STATES },
    holder: { value: 'NAME', help: 'only leases of this holder' },
  },
  example: 'holdfast status jobs/ --state held',
  async run({ arguments: args, output, connect }) {
    const [prefix] = args.words;
    const state = args.text('state') as (typeof STATES)[number] | undefined;
    const holder = args.text('holder');
    const filter = { ...(prefix && { prefix }), ...(state && { state }), ...(holder && { holder }) };
    const rows = [];
    for await (const lease of connect().rows('readLeases', filter, ({ leases }) => leases)) {
      if (output.isJson) output.json(lease);
      else rows.push(lease);
    }
    rows.sort((left, right) => (left.key < right.key ? -1 : 1));
    if (!output.isJson)
      output.table(
        ['KEY', 'STATE', 'HOLDER', 'FENCE', 'SINCE', 'ENDS', 'WAITING'],
        rows.map((lease) => [
          lease.key,
          stateText(lease),
          lease.holder,
          lease.fence,
          lease.acquiredAt,
          untilText(lease.remainingMs),
          lease.waiting ? 'yes' : null,
        ]),
      );
    return 0;
  },
};
