import { parseArgs } from 'node:util';
import { missing, type Result, report, run, shortest } from './campaign.ts';
import { type FaultyService, faultyService, startStores } from './service.ts';

const HELP = `npm run faults: plays seeded histories of callers, clocks and stores under faults, and checks every answer.

  --seconds N     how long (30)
  --minutes N     the same in minutes
  --seed N        the seed of the first history (random); each that follows has the next one
  --histories N   stop after so many
  --whole         print a history that breaks a promise as it is, and do not look for a shorter one
  --only NAME     leases, commits, nameservice, queue or expiry alone; may be given again

It fails when a promise is broken, and then prints the seed and the shortest history found; and when a kind of fault
never struck, unless --histories or --only asked for a part.`;

/** Histories that are played at once. */
const AT_ONCE = 4;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    minutes: { type: 'string' },
    seed: { type: 'string' },
    histories: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    whole: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});

async function main(): Promise<boolean> {
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const seed = number('seed') ?? Math.floor(Math.random() * 2 ** 30);
  const seconds = (number('minutes') ?? 0) * 60 || (number('seconds') ?? 0);
  console.log(`npm run faults -- --seed ${seed}`);
  const stores = await startStores();
  try {
    const services = await Promise.all(Array.from({ length: AT_ONCE }, faultyService));
    const mostHistories = number('histories') ?? Number.POSITIVE_INFINITY;
    const result = await run({ seed, mostHistories, mostMs: seconds * 1000, only: values.only }, services);
    console.log(summary(result));
    const { failed } = result;
    if (failed) {
      console.log(
        `\nAgain: npm run faults -- --seed ${failed.plan.seed} --histories 1${values.only.map((name) => ` --only ${name}`).join('')}\n`,
      );
      console.log(report(values.whole ? failed : await shortest(failed, services[0] as FaultyService)));
      return false;
    }
    const isPart = values.histories !== undefined || values.only.length > 0;
    const absent = isPart ? [] : missing(result);
    if (absent.length > 0) console.log(`\nThese faults never struck: ${absent.join(', ')}`);
    return absent.length === 0;
  } finally {
    await stores.stop();
  }
}

function number(option: 'seconds' | 'minutes' | 'seed' | 'histories'): number | undefined {
  const value = values[option];
  if (value === undefined) return undefined;
  if (!/^\d+(\.\d+)?$/.test(value)) throw new Error(`--${option} must be a number, not '${value}'`);
  return Number(value);
}

function summary({ histories, operations, counts, beyondBound, failed }: Result): string {
  const struck = Object.entries(counts).map(([kind, count]) => `  ${kind.padEnd(20)}${String(count).padStart(8)}`);
  return [
    `${histories} histories (${beyondBound} with clocks beyond the bound), ${operations} operations, ${failed ? 'a promise broken' : 'no promise broken'}`,
    'Faults that struck:',
    ...struck,
  ].join('\n');
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: Error) => {
    console.error(`npm run faults: ${error.message}`);
    process.exit(2);
  },
);
