import { parseArgs } from 'node:util';
import { shown } from '../cli/src/escape.ts';
import { ask } from './ask.ts';
import { connect, timeOfAws } from './aws.ts';
import { DECLINED, exitCodeOf, only, Refusal } from './failure.ts';
import { liftFences } from './lift-fences.ts';
import { inShell } from './stop-command.ts';
import { keyOfTable } from './storage.ts';
import { type BoundHolder, unexpiredIn, useOf } from './table-use.ts';

const TEXTS = { type: 'string', multiple: true, default: [] as string[] } as const;

const SWITCH = { type: 'boolean', default: false } as const;

/** The key attributes of a table of leases. */
const KEY = 'key (S)';

/**
 * `npm run lift-fences` and `holdfast lift-fences`: for a table that was restored to a point in time, before callers use it.
 * @returns the exit code: 0, 1 if AWS failed or the operator answered no, 64 if it was refused
 */
export const liftFencesCommand = (args: string[]): Promise<number> =>
  exitCodeOf(async () => {
    const { values } = parseArgs({ args, options: { table: TEXTS, region: TEXTS, yes: SWITCH } });
    const table = only('table', values.table);
    const region = only('region', values.region);
    if (!table) throw new Refusal('usage: lift-fences --table NAME [--region REGION] [--yes]');
    const aws = await connect({ region });
    const location = `account ${aws.account}, region ${aws.region}`;
    const key = await keyOfTable(aws, table);
    if (key === undefined) throw new Refusal(`there is no table ${table} in ${location}`);
    if (key !== KEY) throw new Refusal(`${table} is not a table of leases: its key is ${key}`);
    const now = await timeOfAws(aws, table);
    const use = values.yes ? undefined : await useOf(aws.dynamodb, table, now);
    if (use && !(await mayLift(use))) return DECLINED;
    const lifted = await liftFences(aws.dynamodb, table, now);
    console.log(`${lifted} fences of ${table} in ${location} were lifted`);
    const { bound } = await unexpiredIn(aws.dynamodb, table, now);
    for (const line of breaking(bound)) console.log(line);
    return 0;
  });

/**
 * The commands that break bound grants. The restored table has grants that were released after the point in time, and nothing ends them while
 * their executions run.
 */
function breaking(bound: BoundHolder[]): string[] {
  if (bound.length === 0) return [];
  return [
    `${bound.length} bound leases or permits came back with the table, and do not expire. Break them before holdfast resume:`,
    ...bound.map(({ key, fence }) =>
      shown(key) === key
        ? `holdfast break --now --fence ${fence} -- ${inShell(key)}`
        : `on the page, because a terminal cannot show the whole key: ${shown(key)}, fence ${fence}`,
    ),
  ];
}

/** @throws Refusal if there is no terminal */
async function mayLift(use: string): Promise<boolean> {
  const advice = `${use}: stop every caller first, as docs/maintenance.md says`;
  if (!process.stdin.isTTY) throw new Refusal(`${advice}, or add --yes. Nothing was changed`);
  console.log(advice);
  return ask('Lift the fences nevertheless?');
}
