import type { components } from '../../../clients/typescript/src/contract.ts';
import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import type { RequestOf } from '../../../clients/typescript/src/transport.ts';
import type { Arguments } from '../arguments.ts';
import { EXIT } from '../exit-codes.ts';
import { misuse } from '../failure.ts';
import type { Service } from '../service.ts';
import type { Verb } from '../verb.ts';
import { TICKET_NOTES, ticketOf } from './queue.ts';
import { ratesOf } from './rates.ts';
import { capText } from './texts.ts';

type Cap = components['schemas']['Cap'];

/** The highest limit of a key. */
const MAX_LIMIT = 200;

/** The longest time after which a cap ends by itself. */
const MAX_SECONDS = 31 * 86_400;

/** How long to ask whether the key has slots, in milliseconds. Without an answer, the command does not mention them. */
const READ_MS = 2000;

export const cap: Verb = {
  summary: 'cap how many may hold a key, pause the key, or lift the cap',
  usage: 'KEY [N|none]',
  words: [1, 2],
  takesKey: true,
  options: {
    reason: { value: 'TEXT', help: 'why: each caller that the cap keeps out sees it' },
    for: { value: 'DURATION', help: 'after how long the cap ends by itself (never)' },
    rate: {
      value: 'N/PERIOD',
      help: 'cap how many may start, such as 20/1m, or none; may be repeated',
      multiple: true,
    },
    kind: { value: 'KIND', help: 'pause the slots of the key, and not its leases and permits', choices: ['once'] },
  },
  notes: `N is how much all holders together may weigh, whatever limits they name, and 0 pauses the key. Holders keep
what they have. none lifts the cap on holders and the caps on rates, and serves the line.`,
  example: "holdfast cap render 0 --reason 'the vendor is down' --for 2h",
  async run({ arguments: args, output, connect }) {
    const request = requestOf(args);
    const service = connect();
    const answer = await service.call('capKey', request);
    if (output.isJson) {
      output.json(answer);
      return 0;
    }
    const { key, before, used, waiting } = answer;
    const what = request.kind ? `each slot of ${key}` : key;
    if (answer.cap) output.line(`${what} is ${capText(answer.cap)}`);
    else output.line(before ? `${what} was ${capText(before)}; the cap is lifted` : `${what} had no cap`);
    if (answer.cap && before) output.line(`before, it was ${capText(before)}`);
    const keeps = isOver(answer.cap, used) ? ', and the holders keep what they have' : '';
    output.line(`in use: ${used}, in line: ${waiting}${keeps}`);
    if (request.limit === 0 && !request.kind && (await hasSlots(service, key)))
      output.line(`slots of ${key} can still begin: pause them with --kind once`);
    return 0;
  },
};

const isOver = (current: Cap | null, used: number): boolean =>
  typeof current?.limit === 'number' && used > current.limit;

/** The request of the command line. @throws Failure that names what is wrong */
function requestOf(args: Arguments): RequestOf<'capKey'> {
  const [key = '', word] = args.words;
  const kind = args.text('kind');
  const limit = limitOf(word);
  const texts = args.all('rate');
  const rates = texts.length > 0 ? cappedRates(texts) : word === 'none' && !kind ? null : undefined;
  const reason = args.text('reason');
  const forSeconds = args.seconds('for', { min: 1, max: MAX_SECONDS, whole: true });
  if (limit === undefined && rates === undefined) throw misuse('name a cap: a number, none, or --rate');
  if (kind && (limit || rates)) throw misuse('--kind once takes 0 or none, and no --rate');
  const lifts = limit == null && !rates;
  if (!lifts && reason === undefined) throw misuse('--reason is missing: callers that the cap keeps out see it');
  if (lifts && forSeconds !== undefined) throw misuse('--for needs a cap, and this command only lifts');
  return { key, limit, rates, reason, forSeconds, kind } as RequestOf<'capKey'>;
}

function limitOf(word: string | undefined): number | null | undefined {
  if (word === undefined) return undefined;
  if (word === 'none') return null;
  const limit = /^\d+$/.test(word) ? Number(word) : Number.NaN;
  if (limit <= MAX_LIMIT) return limit;
  throw misuse(`the cap must be a whole number from 0 to ${MAX_LIMIT}, or none, not '${word}'`);
}

function cappedRates(texts: string[]) {
  if (texts.length === 1 && texts[0] === 'none') return null;
  return ratesOf(texts).map(({ units, ...rate }) => {
    if (units !== undefined) throw misuse('a capped rate is N/PERIOD or NAME:N/PERIOD, without units');
    return rate;
  });
}

/** True if callers also begin slots of the key, which a pause of the key does not stop. */
async function hasSlots(service: Service, key: string): Promise<boolean> {
  const read = await service.readOnce(key, { timeoutMs: READ_MS }).catch((error: unknown) => {
    if (isHoldfastError(error)) return undefined;
    throw error;
  });
  return typeof read?.fence === 'number' && read.cap === undefined;
}

export const next: Verb = {
  summary: 'move a task or a caller to the front of the line of a key',
  usage: 'KEY TICKET',
  words: [2, 2],
  takesKey: true,
  options: {},
  notes: `That waiter gets the next grant of the key. Only one waiter of a key can be moved at a time, and the last command counts.
${TICKET_NOTES}`,
  example: 'holdfast next nightly-report 001795215137091-da91f8eb-f757-4f74-81a5-86d441d75bcf',
  async run({ arguments: args, output, connect }) {
    const [service, key] = [connect(), args.word(0)];
    const answer = await service.call('runNext', { key, ticket: await ticketOf(service, key, args.word(1)) });
    if (output.isJson) output.json(answer);
    else if (answer.moved) output.line(`the ticket is next${answer.before ? `, before ${answer.before}` : ''}`);
    else output.line(`the ticket was not in line (${answer.reason})`);
    return answer.moved ? 0 : EXIT.refused;
  },
};
