import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { CloudWatchLogsClient, GetQueryResultsCommand, StartQueryCommand } from '@aws-sdk/client-cloudwatch-logs';
import { Output } from '../cli/src/output.ts';
import { nameOf } from '../cli/src/verbs/texts.ts';
import { type Aws, connect } from './aws.ts';
import { existingStack, outputOf } from './drain.ts';
import { exitCodeOf, only, Refusal } from './failure.ts';
import { historyOf, type KeyEvent, LOGGING_FUNCTION_OUTPUTS, queryOf } from './history.ts';
import { locationOf, TEXTS } from './stage-commands.ts';

const SWITCH = { type: 'boolean', default: false } as const;

/** The most lines that Logs Insights returns. */
const MAX_LINES = 10_000;

const POLL_MS = 1000;

/**
 * `holdfast history`: prints who had a key, from the logs of the functions. It changes nothing.
 * @returns the exit code: 0, 1 if AWS failed, 64 if it was refused
 */
export const historyCommand = (args: string[]): Promise<number> =>
  exitCodeOf(async () => {
    const options = { stage: TEXTS, region: TEXTS, account: TEXTS, since: TEXTS, limit: TEXTS, json: SWITCH };
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const { stage, location } = locationOf('history KEY', values);
    const [key, other] = positionals;
    if (key === undefined || other !== undefined) throw new Refusal('usage: history KEY --stage NAME');
    const since = sinceOf(only('since', values.since) ?? '7d');
    const limit = only('limit', values.limit) ?? String(MAX_LINES);
    if (!/^[1-9]\d{0,4}$/.test(limit))
      throw new Refusal(`--limit must be a whole number from 1 to 99999, not '${limit}'`);
    const output = new Output({ json: values.json, quiet: false });
    const lines = await linesOf(await connect(location), { stage, key, since });
    const events = historyOf(key, lines).slice(-Number(limit));
    if (values.json) for (const event of events) output.json(event);
    else output.table(['AT', 'EVENT', 'HOLDER', 'FENCE', 'BY'], events.map(row));
    if (events.length === 0) output.note(`the logs do not name ${key} since ${since.toISOString()}`);
    if (lines.length === MAX_LINES) output.note(`only the last ${MAX_LINES} lines were read: give a shorter --since`);
    return 0;
  });

/** @throws Refusal if the text is not a duration */
function sinceOf(text: string): Date {
  const [, count, unit = ''] = /^(\d{1,4})([mhd])$/.exec(text) ?? [];
  const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 }[unit];
  if (!unitMs) throw new Refusal(`--since must be a duration such as 90m, 12h or 7d, not '${text}'`);
  return new Date(Date.now() - Number(count) * unitMs);
}

/** The lines of the logs about a key, the newest first. @throws Refusal if there is no such stack */
async function linesOf(
  aws: Aws,
  { stage, key, since }: { stage: string; key: string; since: Date },
): Promise<string[]> {
  const stack = await existingStack(aws, stage);
  const logs = new CloudWatchLogsClient({ region: aws.region, maxAttempts: 5 });
  const query = new StartQueryCommand({
    logGroupNames: [
      ...LOGGING_FUNCTION_OUTPUTS.map((output) => `/aws/lambda/${outputOf(stack, output)}`),
      outputOf(stack, 'AuditLogGroupName'),
    ],
    startTime: Math.floor(since.getTime() / 1000),
    endTime: Math.ceil(Date.now() / 1000),
    queryString: queryOf(key, MAX_LINES),
  });
  const { queryId } = await logs.send(query);
  for (;;) {
    const { status, results = [] } = await logs.send(new GetQueryResultsCommand({ queryId }));
    if (status === 'Complete')
      return results.map((fields) => fields.find(({ field }) => field === '@message')?.value ?? '');
    if (status !== 'Scheduled' && status !== 'Running') throw new Error(`the query of the logs ended as ${status}`);
    await sleep(POLL_MS);
  }
}

const WORDS: Partial<Record<KeyEvent['event'], string>> = { executionEnded: 'execution ended' };

const row = ({ at, event, holder, fence, by }: KeyEvent) => [
  `${at.slice(0, 19)}Z`,
  WORDS[event] ?? event,
  holder === null ? null : nameOf(holder),
  fence,
  by,
];
