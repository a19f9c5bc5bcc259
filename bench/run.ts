import { styleText } from 'node:util';
import { startDynamodb } from '../local/dynamodb.ts';
import { readOptions } from '../local/options.ts';
import { freePort } from '../local/ports.ts';
import { bundleMeasurements } from './bundles.ts';
import { commitMeasurements } from './commits.ts';
import { contentionMeasurements } from './contention.ts';
import { absentees, libraries } from './contestants.ts';
import { cycleMeasurements } from './cycles.ts';
import { CREDENTIALS } from './environment.ts';
import { inTurn, LIMIT_MINUTES } from './in-turn.ts';
import { initMeasurements } from './init.ts';
import { leaseMeasurements } from './leases.ts';
import { installLibraries } from './libraries.ts';
import { lineMeasurements } from './line.ts';
import { type Figure, type Measurement, withSlack } from './measurement.ts';
import { nameserviceMeasurements } from './nameservice.ts';
import { parkedMeasurements } from './parked.ts';
import { permitCostMeasurements } from './permits.cost.ts';
import { permitsMeasurements } from './permits.ts';
import { publish } from './publish.ts';
import { reportMeasurements } from './report.ts';
import { describeMachine, keepOnly, RESULTS, type RunFacts, record } from './results.ts';
import { scaleMeasurements } from './scale.ts';
import { faultMeasurements } from './servers/faults.ts';
import { serverMeasurements } from './servers/speed.ts';
import { sleeperMeasurements } from './sleepers.ts';
import { printFigures } from './table.ts';
import { waitingMeasurements } from './waiting.ts';

const MEASUREMENTS: Measurement[] = [
  ...leaseMeasurements,
  ...cycleMeasurements,
  ...waitingMeasurements,
  ...contentionMeasurements,
  ...lineMeasurements,
  ...sleeperMeasurements,
  ...parkedMeasurements,
  ...permitCostMeasurements,
  ...permitsMeasurements,
  ...commitMeasurements,
  ...nameserviceMeasurements,
  ...reportMeasurements,
  ...scaleMeasurements,
  ...bundleMeasurements,
  ...initMeasurements,
  ...serverMeasurements,
  ...faultMeasurements,
];

const QUICK_RESULTS = 'bench/quick/results.json';

const HELP = `npm run bench -- [options]

  --only NAME   run this measurement only; can be given several times
  --no-bars     show missed bars, but do not fail
  --quick       run for a few minutes, with few samples, fewer libraries and looser bars: a test of the bench, not of Holdfast
  --help

Measurements:
${MEASUREMENTS.map(({ name, title }) => `  ${name.padEnd(12)}${title}`).join('\n')}

The run installs missing and changed libraries into bench/libraries, and builds the libraries in Java, Go and Rust if mvn, go and cargo are
installed (npm run verify -- bench-libraries). With --quick, the run uses the libraries that are installed.
A measurement that fails or takes more than ${LIMIT_MINUTES} minutes is named at the end, and the other measurements run.
Exits with 1 if a measurement failed, or if a bar is missed without a recorded reason. Figures go to ${RESULTS}, and from there
to the documents and the charts. With --quick, figures go to ${QUICK_RESULTS} alone. Without --only, all figures have the date of one run.`;

// With exit, so that child processes are stopped too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

await main().catch((error: Error) => {
  console.error(`npm run bench: ${error.message}`);
  process.exitCode = 1;
});

async function main(): Promise<void> {
  const {
    help,
    only,
    quick,
    'no-bars': unjudged,
  } = readOptions({
    only: { type: 'string', multiple: true },
    'no-bars': { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  }).values;
  if (help) return console.log(HELP);
  const chosen = choose(only);
  console.log(Object.values(describeMachine()).join('\n'));
  if (!quick && chosen.some(({ comparesLibraries }) => comparesLibraries)) await installLibraries();
  // All measurements share these facts, so that a run over midnight has one date.
  const run = { measuredAt: new Date().toISOString(), libraries: libraries(), leftOut: absentees(), quick };
  const lines = chosen.flatMap((one) => [...(one.libraries?.() ?? []), ...(one.leftOut?.() ?? [])]);
  for (const line of new Set([...run.libraries, ...run.leftOut, ...lines])) console.log(line);
  Object.assign(process.env, CREDENTIALS);
  const file = quick ? QUICK_RESULTS : RESULTS;
  const { missedBars, failed } = await inTurn(chosen, async (measurement) => {
    // Each measurement gets a fresh emulator, so that the tables of one do not slow down the next.
    const emulator = await startDynamodb(await freePort());
    try {
      const found = await measurement.run({ quick, dynamodbEndpoint: emulator.endpoint, progress });
      const figures = quick ? found.map(withSlack) : found;
      progress('');
      printFigures(measurement, figures);
      await record(file, { measurement, figures }, withOwn(measurement, run));
      return figures;
    } finally {
      await emulator.stop();
    }
  });
  await keepOnly(
    file,
    MEASUREMENTS.map(({ name }) => name),
  );
  if (!quick) await publish();
  console.log(
    missedBars.length === 0 ? '\nEvery bar is kept, or missed for a reason on record.' : complaint(missedBars),
  );
  if (failed.length > 0) console.error(styleText('red', `Failed, and not recorded: ${failed.join(', ')}`));
  // Calls exit, because a measurement that took too long may still keep the process alive.
  process.exit(failed.length > 0 || (missedBars.length > 0 && !unjudged) ? 1 : 0);
}

function withOwn<Present extends RunFacts>({ libraries, leftOut }: Measurement, present: Present): Present {
  return { ...present, ...(libraries && { libraries: libraries() }), ...(leftOut && { leftOut: leftOut() }) };
}

function complaint(failed: Figure[]): string {
  return styleText('red', `\nMissed without a reason on record: ${failed.map(({ what }) => what).join('; ')}`);
}

function choose(only: string[] | undefined): Measurement[] {
  for (const name of only ?? [])
    if (!MEASUREMENTS.some((one) => one.name === name)) throw new Error(`there is no measurement ${name}; see --help`);
  return MEASUREMENTS.filter(({ name }) => only?.includes(name) ?? true);
}

/** Shows progress on a line that is overwritten while a measurement runs. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text) console.error(text);
}
