import type { components } from '../../../client/src/contract.ts';
import { EXIT } from '../exit-codes.ts';
import type { Output } from '../output.ts';
import type { Verb } from '../verb.ts';
import { stateText, untilText, usedText } from './words.ts';

type Schemas = components['schemas'];

export const queue: Verb = {
  summary: 'show who holds a key, and the line of those who wait for it',
  usage: 'KEY',
  words: [1, 1],
  options: { limit: { value: 'N', help: 'how many of them to list (1000)' } },
  example: 'holdfast queue nightly-report',
  async run({ arguments: args, output, connect }) {
    const limit = args.number('limit', { least: 1, most: 1000, whole: true }) ?? 1000;
    const read = await connect().readKey(args.word(0), { waiters: true, limit });
    if (output.isJson) {
      output.json(read);
      return 0;
    }
    if (read.kind === 'pool') pool(read, output);
    else lease(read, output);
    waiters(read, output);
    return 0;
  },
};

function lease(read: Schemas['LeaseWithQueue'], output: Output): void {
  const { kind, key, holder, fence, acquiredAt, remainingMs, execution, data, waiting } = read;
  const [state, ends] = [stateText(read), untilText(remainingMs)];
  const shared = data === null ? null : JSON.stringify(data);
  output.fields({ key, kind, state, holder, fence, since: acquiredAt, ends, execution, data: shared, waiting });
}

function pool(read: Schemas['Pool'], output: Output): void {
  const { kind, key, limitBy, holders, waiting } = read;
  output.fields({ key, kind, used: usedText(read), 'limit by': limitBy, waiting });
  if (holders.length === 0) return;
  output.line('');
  output.table(
    ['HOLDER', 'STATE', 'FENCE', 'SINCE', 'ENDS', 'MODE', 'WEIGHT'],
    holders.map((permit) => [
      permit.holder,
      stateText(permit),
      permit.fence,
      permit.acquiredAt,
      untilText(permit.remainingMs),
      permit.mode,
      permit.weight,
    ]),
  );
}

function waiters({ waiters: rows = [] }: Pick<Schemas['Pool'], 'waiters'>, output: Output): void {
  if (rows.length === 0) return;
  output.line('');
  output.table(
    ['PLACE', 'KIND', 'HOLDER', 'SINCE', 'DEADLINE', 'TICKET'],
    rows.map(({ kind, holder, parkedAt, deadline, ticket }, at) => [at + 1, kind, holder, parkedAt, deadline, ticket]),
  );
}

export const cancel: Verb = {
  summary: 'take a task or a caller out of the line of a key',
  usage: 'KEY TICKET',
  words: [2, 2],
  options: {},
  notes: 'The exit code is 1 if no waiter has that ticket.',
  example: 'holdfast cancel nightly-report 001795215137091-da91f8eb-f757-4f74-81a5-86d441d75bcf',
  async run({ arguments: args, output, connect }) {
    const answer = await connect().call('cancelWaiter', { key: args.word(0), ticket: args.word(1) });
    if (output.isJson) output.json(answer);
    else
      output.line(answer.cancelled ? 'the ticket is out of the line' : `the ticket was not in line (${answer.reason})`);
    return answer.cancelled ? 0 : EXIT.refused;
  },
};
