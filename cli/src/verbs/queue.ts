import type { components } from '../../../clients/typescript/src/contract.ts';
import { EXIT } from '../exit-codes.ts';
import { Failure, misuse } from '../failure.ts';
import type { Output } from '../output.ts';
import type { Key, Service } from '../service.ts';
import type { Verb } from '../verb.ts';
import {
  agoText,
  capText,
  endText,
  holderText,
  isShared,
  NO_RECORD,
  nameOf,
  stateText,
  untilText,
  usedText,
} from './texts.ts';

type Schemas = components['schemas'];

export const queue: Verb = {
  summary: 'show who holds a key, and the line of waiters',
  usage: 'KEY',
  words: [1, 1],
  takesKey: true,
  options: { limit: { value: 'N', help: 'how many waiters to list (1000)' } },
  notes: 'The exit code is 1 if the key has neither a record nor a line.',
  example: 'holdfast queue nightly-report',
  async run({ arguments: args, output, connect }) {
    const limit = args.number('limit', { min: 1, max: 1000, whole: true }) ?? 1000;
    const read = await connect().readKey(args.word(0), { waiters: true, limit });
    const code = read.hasRecord || read.waiting > 0 ? 0 : EXIT.refused;
    if (output.isJson) {
      output.json(read);
      return code;
    }
    if (!read.hasRecord) output.fields({ key: read.key, state: NO_RECORD, waiting: read.waiting });
    else if (isShared(read)) permits(read, output);
    else lease(read, output);
    waiters(read, output);
    return code;
  },
};

function lease(read: Key, output: Output): void {
  const { key, holder, fence, execution, data, waiting, previous } = read;
  const [state, ends] = [stateText(read), endText(read)];
  const since = sinceText(read.acquiredAt);
  const shared = data === null ? null : JSON.stringify(data);
  output.fields({
    ...{ key, state, holder: holder && nameOf(holder), fence, since, ends, execution, data: shared, waiting },
    ...(read.brokenAt && { broken: brokenText(read) }),
    ...(read.supersededBy !== undefined && { 'superseded by': nameOf(read.supersededBy) }),
    ...(previous && { previous: previousText(previous) }),
    ...(read.cap?.limit && { used: usedText(read) }),
    ...capField(read),
  });
}

const capField = ({ cap }: Pick<Key, 'cap'>) => cap && { cap: capText(cap) };

const sinceText = (at: string | null): string | null => at && `${at} (${agoText(at)} ago)`;

/** When a lease was broken, and by whom, if the record names the operator. */
const brokenText = ({ brokenAt, brokenBy }: Pick<Key, 'brokenAt' | 'brokenBy'>): string =>
  `${sinceText(brokenAt)}${brokenBy ? ` by ${brokenBy}` : ''}`;

const ENDED = {
  ...{ released: 'released', expired: 'expired', broken: 'broken', superseded: 'superseded' },
  executionEnded: 'its execution ended',
};

const previousText = ({ holder, ended, at, by }: Schemas['PreviousHolder']): string =>
  `${nameOf(holder)}, ${ENDED[ended]} ${sinceText(at)}${by ? ` by ${by}` : ''}`;

function permits(read: Key, output: Output): void {
  const { key, limitBy, holders, waiting } = read;
  output.fields({
    key,
    state: stateText(read),
    used: usedText(read),
    'limit named by': limitBy,
    waiting,
    ...capField(read),
  });
  output.line('');
  output.table(
    ['HOLDER', 'STATE', 'FENCE', 'HELD', 'ENDS', 'MODE', 'WEIGHT'],
    holders.map((permit) => [
      holderText(permit),
      stateText(permit),
      permit.fence,
      agoText(permit.acquiredAt),
      endText(permit),
      permit.mode,
      permit.weight,
    ]),
  );
  const broken = holders.filter(({ brokenAt }) => brokenAt);
  if (broken.length > 0) output.line('');
  for (const permit of broken) output.line(`${holderText(permit)}: broken ${brokenText(permit)}`);
}

function waiters({ waiters: rows = [] }: Pick<Key, 'waiters'>, output: Output): void {
  if (rows.length === 0) return;
  output.line('');
  output.table(
    ['PLACE', 'KIND', 'HOLDER', 'WAITED', 'STATE', 'TICKET'],
    rows.map((waiter, at) => [
      at + 1,
      waiter.kind,
      nameOf(waiter.holder),
      agoText(waiter.parkedAt),
      waiterText(waiter),
      waiter.ticket,
    ]),
  );
}

/**
 * The state of a waiter: who moved it, when a caller that sleeps is due or a task stops waiting, and whom it replaces. The end of a call that waits is not
 * shown, because the same program may call again.
 */
function waiterText({ kind, deadline, dueAt, movedBy, replace }: Schemas['Waiter']): string | null {
  const until = (instant: string) => untilText(Date.parse(instant) - Date.now());
  const moved = movedBy !== undefined && `moved by ${movedBy ?? 'an operator'}`;
  const end = dueAt ? `asleep, due ${until(dueAt)}` : kind !== 'caller' && `stops waiting ${until(deadline)}`;
  return [moved, end, replace && `replaces ${replace}`].filter(Boolean).join(', ') || null;
}

export const TICKET_NOTES = `TICKET is a ticket as queue shows it, or its end. The exit code is 1 if no waiter has the ticket.`;

/** How many letters of a ticket's end are needed, so that a position, which changes, is not taken for a ticket. */
const MIN_END = 6;

/**
 * The ticket that a word means: a whole ticket, the end of a ticket, or a ticket as a narrow terminal shows it.
 * @throws Failure unless exactly one waiter has such a ticket
 */
export async function ticketOf(service: Service, key: string, word: string): Promise<string> {
  if (/^\d{15}-.{36}$/.test(word)) return word;
  const [end = '', head = ''] = word.split('…').reverse();
  if (end.length < MIN_END) throw misuse(`name the ticket, or at least the last ${MIN_END} letters of the ticket`);
  const { waiters = [] } = await service.readKey(key, { waiters: true, limit: 1000 });
  const [found, other] = waiters.filter(({ ticket }) => ticket.startsWith(head) && ticket.endsWith(end));
  if (found && !other) return found.ticket;
  throw new Failure(`${found ? 'several waiters have' : 'no waiter has'} a ticket with this end`, EXIT.refused);
}

export const cancel: Verb = {
  summary: 'take a task or a caller out of the line of a key',
  usage: 'KEY TICKET',
  words: [2, 2],
  takesKey: true,
  options: {},
  notes: TICKET_NOTES,
  example: 'holdfast cancel nightly-report 001795215137091-da91f8eb-f757-4f74-81a5-86d441d75bcf',
  async run({ arguments: args, output, connect }) {
    const [service, key] = [connect(), args.word(0)];
    const answer = await service.call('cancelWaiter', { key, ticket: await ticketOf(service, key, args.word(1)) });
    if (output.isJson) output.json(answer);
    else
      output.line(answer.cancelled ? 'the ticket is out of the line' : `the ticket was not in line (${answer.reason})`);
    return answer.cancelled ? 0 : EXIT.refused;
  },
};
