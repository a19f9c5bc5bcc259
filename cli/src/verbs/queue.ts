import type { components } from '../../../client/src/contract.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import type { Output } from '../output.ts';
import type { Verb } from '../verb.ts';
import { stateText, untilText } from './words.ts';

type Schemas = components['schemas'];

export const queue: Verb = {
  summary: 'show one lease, and the line of those who wait for it',
  usage: 'KEY',
  words: [1, 1],
  options: {
    limit: { value: 'N', help: 'how many of them to list (1000)' },
    pool: { help: 'show who has permits of that pool, and the line for it' },
  },
  example: 'holdfast queue nightly-report',
  async run({ arguments: args, output, connect }) {
    const limit = args.number('limit', { least: 1, most: 1000, whole: true }) ?? 1000;
    const asked = { key: args.word(0), waiters: true, limit, ...ofPool(args) };
    const read = (await connect().call('readLeases', asked)) as Schemas['LeaseWithQueue'] | Schemas['Pool'];
    const { waiters = [] } = read;
    if (output.isJson) {
      output.json(read);
      return 0;
    }
    if ('holders' in read) permits(read, output);
    else {
      const { key, holder, fence, acquiredAt, remainingMs, execution, data, waiting } = read;
      const [state, ends] = [stateText(read), untilText(remainingMs)];
      const shared = data === null ? null : JSON.stringify(data);
      output.fields({ key, state, holder, fence, since: acquiredAt, ends, execution, data: shared, waiting });
    }
    if (waiters.length > 0) {
      output.line('');
      output.table(
        ['PLACE', 'KIND', 'HOLDER', 'SINCE', 'DEADLINE', 'TICKET'],
        waiters.map(({ kind, holder, parkedAt, deadline, ticket }, at) => [
          at + 1,
          kind,
          holder,
          parkedAt,
          deadline,
          ticket,
        ]),
      );
    }
    return 0;
  },
};

const ofPool = (args: Arguments) => args.is('pool') && { pool: true };

function permits({ holders }: Schemas['Pool'], output: Output): void {
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

export const cancel: Verb = {
  summary: 'take a task or a caller out of the line of a lease',
  usage: 'KEY TICKET',
  words: [2, 2],
  options: { pool: { help: 'it is a ticket of the line of a pool' } },
  notes: 'It exits with 1 where nobody was waiting by that ticket.',
  example: 'holdfast cancel nightly-report 001795215137091-da91f8eb-f757-4f74-81a5-86d441d75bcf',
  async run({ arguments: args, output, connect }) {
    const answer = await connect().call('cancelWaiter', {
      key: args.word(0),
      ticket: args.word(1),
      ...ofPool(args),
    });
    if (output.isJson) output.json(answer);
    else
      output.line(answer.cancelled ? 'the ticket is out of the line' : `the ticket was not in line (${answer.reason})`);
    return answer.cancelled ? 0 : EXIT.refused;
  },
};
