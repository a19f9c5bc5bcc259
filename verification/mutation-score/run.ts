import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readOptions } from '../../local/options.ts';
import {
  CAPABILITIES,
  digestOf,
  dropGone,
  type FileReport,
  isEquivalent,
  type Open,
  openStatus,
  placeOf,
  REPORT,
  type Report,
  readReport,
  reportOf,
  writeReport,
} from './report.ts';
import { type Mutant, runStryker } from './stryker.ts';

const HELP = `npm run verify -- mutation-score: has Stryker make small changes to the domain, one after the other, and counts those that the tests catch.
Writes report.json and report.md to ${REPORT}, and prints the survivors. Files that have not changed since the last run are left out.
Entries of equivalent.json whose text has left the source are deleted at the end of a run, and printed.

  --only TEXT    only the files whose path has TEXT; may be given again
  --shard K/N    of all files, every Nth one, from the Kth on (1/1)
  --open         what survived last time, again: the tests may have learned
  --timed-out    with --open: also what timed out, which takes long, in case the machine was the reason
  --again        also files that have not changed
  --tests TEXT   only with the test files whose path has TEXT; may be given again. What survives is tried with all by --open
  --patience S   how many seconds longer than they should the tests of a mutant may take (15); more where the machine is busy
  --report       write report.md again and delete what has left the source, and run nothing`;

/** How many lines one run of Stryker tries. An interrupted run loses at most these. */
const LINES_AT_ONCE = 1300;

/** With how many tests a mutant is tried. Further tests would seldom catch it, and `--open` tries all of them. */
const MAX_TESTS = 60;

/** A folder of shared/, or `expired`: the files of several folders that judge whether a record has expired. */
type Room = (typeof CAPABILITIES)[number] | 'expired';

const NO_RACES = '!(races|races-in-line|line-races|crowd|park-races)*';

/** The tests that may catch a mutant: those of its folder, except the races, which take long and catch little more. */
const TESTS: Record<Room, string[]> = {
  aws: [
    'test/aws/*',
    'test/locks/{acquire,faults,release}*',
    'test/commits/{commit,faults}*',
    'test/nameservice/{faults,requests}*',
    'test/expiry/{clean,report}*',
  ],
  commits: ['test/commits/!(races|s3-conformance)*', 'test/namespaces/{others,paths}*'],
  expired: ['test/expiry/{clean,held,permits,report}*', 'test/nameservice/items*', 'test/once/expired*'],
  expiry: ['test/expiry/!(races|permit-races)*', 'test/once/expired*', 'test/namespaces/others*'],
  locks: [`test/locks/${NO_RACES}`, 'test/line/*', 'test/namespaces/{executions,leases}*'],
  nameservice: ['test/nameservice/!(races)*', 'test/namespaces/others*'],
  once: ['test/once/!(races|machines)*', 'test/namespaces/leases*'],
  rates: ['test/rates/!(races)*', 'test/namespaces/rates*'],
};

async function main(): Promise<void> {
  const { values, number } = readOptions({
    only: { type: 'string', multiple: true, default: [] },
    shard: { type: 'string', default: '1/1' },
    open: { type: 'boolean', default: false },
    'timed-out': { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
    tests: { type: 'string', multiple: true, default: [] },
    patience: { type: 'string' },
    report: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) return console.log(HELP);
  const patienceMs = 1000 * (number('patience', { min: 1, max: 3600 }) ?? 15);
  process.chdir(resolve(import.meta.dirname, '../..'));
  const files = globSync(`shared/{${CAPABILITIES}}/**/*.ts`).sort();
  const report = await readReport();
  const chosen = shardOf(files, values.shard)
    .filter((file) => has(file, values.only))
    .filter((file) => values.open === (report[file]?.sha256 === digestOf(file)) || values.again);
  if (!values.report) {
    install();
    for (const group of groupsOf(chosen)) {
      const testFiles = testsOf(group).filter((file) => has(file, values.tests));
      const mutate = values.open ? placesOf(group, report, values['timed-out']) : group;
      if (mutate.length === 0 || testFiles.length === 0) continue; // with no files at all, Vitest would run every test
      const max = values.open ? Number.POSITIVE_INFINITY : MAX_TESTS;
      const found = await runStryker({ mutate, testFiles, max, patienceMs });
      for (const file of group) {
        const mutants = found[file] ?? [];
        const before = report[file];
        report[file] = values.open && before ? withFewer(before, mutants) : reportOf(file, mutants);
        for (const one of openOf(file, report)) console.log(`${file}:${described(one)}`);
      }
      await writeReport(report, files);
    }
  }
  await writeReport(report, files);
  for (const one of await dropGone()) console.log(`no longer in the source, deleted from equivalent.json: ${one}`);
}

/** Whether the path has one of the texts, or there are none. */
const has = (path: string, texts: string[]): boolean => texts.length === 0 || texts.some((text) => path.includes(text));

const openOf = (file: string, report: Report): Open[] =>
  report[file]?.open.filter((one) => !isEquivalent(file, one)) ?? [];

const described = ({ at, status, mutator, original, replacement }: Open) =>
  `${at}: ${mutator} ${status}: ${original} -> ${replacement}`;

/** The survivors as ranges for Stryker, whose columns count from 0. */
const placesOf = (files: string[], report: Report, withTimedOut: boolean): string[] =>
  files.flatMap((file) => {
    const again = openOf(file, report).filter(({ status }) => withTimedOut || status !== 'Timeout');
    return [...new Set(again.map(({ at }) => `${file}:${fromZero(at)}`))];
  });

const fromZero = (place: string) => place.replace(/:(\d+)/g, (_, column) => `:${column - 1}`);

/** The report of a file after its open mutants were tried again, perhaps with other mutants. */
function withFewer(before: FileReport, tried: Mutant[]): FileReport {
  const open = before.open.flatMap((one) => {
    const mutant = tried.find((other) => isSame(one, other));
    const status = mutant ? openStatus(mutant) : one.status;
    // Only some tests were run, so other tests may run the mutant.
    return status ? { ...one, status: status === 'NoCoverage' ? one.status : status } : [];
  });
  return { ...before, caught: before.caught + before.open.length - open.length, open };
}

const isSame = ({ at, mutator, replacement }: Pick<Open, 'at' | 'mutator' | 'replacement'>, mutant: Mutant): boolean =>
  at === placeOf(mutant) && mutator === mutant.mutatorName && replacement === mutant.replacement;

function shardOf(files: string[], text: string): string[] {
  const [shard, shards] = /^(\d+)\/(\d+)$/.exec(text)?.slice(1).map(Number) ?? [];
  if (!shard || !shards || shard > shards) throw new Error(`--shard must be K/N with K from 1 to N, not '${text}'`);
  return files.filter((_, index) => index % shards === shard - 1);
}

/** Groups the files by room. */
function groupsOf(files: string[]): string[][] {
  const byRoom = Object.values(Object.groupBy(files, roomOf)) as string[][];
  return byRoom.flatMap((some) => {
    const groups: string[][] = [];
    let left = 0;
    for (const file of some) {
      const lines = readFileSync(file, 'utf8').split('\n').length;
      if (left < lines) {
        groups.push([]);
        left = LINES_AT_ONCE;
      }
      groups.at(-1)?.push(file);
      left -= lines;
    }
    return groups;
  });
}

function roomOf(file: string): Room {
  if (file.endsWith('/expired.ts')) return 'expired';
  return file.split('/')[1] as Room;
}
const testsOf = ([file = '']: string[]) => globSync(TESTS[roomOf(file)].map((pattern) => `${pattern}.test.ts`));

/** Apart from the packages that the tests need. */
function install(): void {
  if (existsSync(join(import.meta.dirname, 'node_modules/.package-lock.json'))) return;
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', args, { cwd: import.meta.dirname, stdio: 'inherit' });
}

main().then(
  () => process.exit(0),
  (error: Error) => {
    console.error(`npm run verify -- mutation-score: ${error.message}`);
    process.exit(2);
  },
);
