import { writeFile } from 'node:fs/promises';
import { readOptions } from '../../local/options.ts';
import type { Played } from '../campaign/ledger.ts';
import { missing, type Result, report, run, shortest } from './campaign.ts';
import { playCourse } from './courses/course.ts';
import { COURSES } from './courses/courses.ts';
import { type FaultyService, faultyService, startStores } from './service.ts';
import { CAPABILITY_NAMES } from './world.ts';

const HELP = `npm run verify -- faults: plays seeded histories of callers, clocks and stores under faults, and checks every answer.

  --seconds N     how long (30)
  --minutes N     how long, in minutes
  --seed N        the seed of the first history (random); each that follows has the next one
  --histories N   stop after N histories
  --whole         print a history that breaks a promise as it is, and do not look for a shorter one
  --only NAME     leases, permits, queue, commits, nameservice, expiry, patience, once, redrives, rates or clients only; may be given again
  --rust-retries  let writers of the Rust crate send an unanswered PUT again, as they do unless told not to: the risk that
                  docs/safety.md names, and these histories show
  --report FILE   write what was played there, as verification/campaign reads it

It fails when a promise is broken, and then prints the seed and the shortest history found. Without --histories and --only, it first
plays the courses (verification/histories/courses), and fails when a kind of fault never struck. It exits with 1 when it fails, and with 2
when it could not run.`;

/** How many histories are played at once. */
const AT_ONCE = 4;

/** The generator of the histories takes 32 bits. */
const HIGHEST_SEED = 2 ** 32 - 1;

function readCampaign() {
  const { values, number } = readOptions({
    seconds: { type: 'string', default: '30' },
    minutes: { type: 'string' },
    seed: { type: 'string' },
    histories: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    report: { type: 'string' },
    'rust-retries': { type: 'boolean', default: false },
    whole: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  const unknown = values.only.find((name) => !CAPABILITY_NAMES.includes(name));
  if (unknown !== undefined) throw new Error(`--only must be one of ${CAPABILITY_NAMES.join(', ')}, not '${unknown}'`);
  const minutes = number('minutes', { min: 0.01 });
  const seconds = number('seconds', { min: 1 }) ?? 0;
  const histories = number('histories', { min: 1, whole: true });
  return {
    ...values,
    seed: number('seed', { min: 0, max: HIGHEST_SEED, whole: true }) ?? Math.floor(Math.random() * 2 ** 30),
    maxMs: (minutes === undefined ? seconds : minutes * 60) * 1000,
    maxHistories: histories ?? Number.POSITIVE_INFINITY,
    foreignRetries: values['rust-retries'],
    isPart: histories !== undefined || values.only.length > 0,
  };
}

async function main(): Promise<boolean> {
  const { help, seed, maxMs, maxHistories, only, report: reportFile, whole, foreignRetries, isPart } = readCampaign();
  if (help) {
    console.log(HELP);
    return true;
  }
  console.log(`npm run verify -- faults --seed ${seed}`);
  const stores = await startStores();
  try {
    const services = await Promise.all(Array.from({ length: AT_ONCE }, faultyService));
    // The courses run beside the histories, so that everything takes as long as was asked for.
    const courses = isPart ? [] : playCourses(await faultyService());
    const result = await run({ seed, maxHistories, maxMs, only, foreignRetries }, services);
    console.log(summary(result));
    if (reportFile !== undefined) await writeFile(reportFile, JSON.stringify(asPlayed({ seed, only }, result)));
    const { failed } = result;
    const broken = await courses;
    if (failed) {
      console.log(
        `\nAgain: npm run verify -- faults --seed ${failed.plan.seed} --histories 1${only.map((name) => ` --only ${name}`).join('')}\n`,
      );
      console.log(report(whole ? failed : await shortest(failed, services[0] as FaultyService)));
      return false;
    }
    const absent = isPart ? [] : missing(result);
    if (absent.length > 0) console.log(`\nThese faults never struck: ${absent.join(', ')}`);
    return absent.length === 0 && broken.length === 0;
  } finally {
    await stores.stop();
  }
}

/** @returns the broken promises */
async function playCourses(service: FaultyService): Promise<string[]> {
  const broken: string[] = [];
  for (const course of COURSES)
    for (const { promise, detail } of await playCourse(course, service))
      broken.push(`Broken: ${promise}\n  ${detail} (${course.name})`);
  const outcome = broken.length === 0 ? 'no promise broken' : 'a promise broken';
  console.log([`${COURSES.length} courses of histories: ${outcome}`, ...broken].join('\n'));
  return broken;
}

function asPlayed(
  { seed, only }: { seed: number; only: string[] },
  { histories, operations, permits, beyondBound, failed }: Result,
): Played {
  const promises = [...new Set(failed?.violations.map(({ promise }) => promise))];
  return {
    seed,
    ...(only.length > 0 && { only }),
    histories,
    operations,
    permits,
    beyondBound,
    failed: failed ? { seed: failed.plan.seed, promises } : null,
  };
}

function summary({ histories, operations, permits, counts, beyondBound, failed }: Result): string {
  const struck = Object.entries(counts).map(([kind, count]) => `  ${kind.padEnd(20)}${String(count).padStart(8)}`);
  return [
    `${histories} histories (${beyondBound} with clocks beyond the bound), ${operations} operations, ${permits} permits, ${failed ? 'a promise broken' : 'no promise broken'}`,
    'Faults that struck:',
    ...struck,
  ].join('\n');
}

main().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: Error) => {
    console.error(`npm run verify -- faults: ${error.message}`);
    process.exit(2);
  },
);
