import { writeFile } from 'node:fs/promises';
import { arch, cpus, release, totalmem, type } from 'node:os';
import { parseArgs, styleText } from 'node:util';
import { startDynamodb } from '../local/dynamodb.ts';
import { freePort } from '../local/ports.ts';
import packageJson from '../package.json' with { type: 'json' };
import { bundleMeasurements } from './bundles.ts';
import { commitMeasurements } from './commits.ts';
import { leaseMeasurements } from './leases.ts';
import { type Figure, type Measurement, missed, printFigures } from './measurement.ts';
import { nameserviceMeasurements } from './nameservice.ts';
import { reportMeasurements } from './report.ts';

const MEASUREMENTS: Measurement[] = [
  ...leaseMeasurements,
  ...commitMeasurements,
  ...nameserviceMeasurements,
  ...reportMeasurements,
  ...bundleMeasurements,
];

const HELP = `npm run bench -- [options]

  --only NAME   run this measurement only; can be given several times
  --quick       few samples: to see that it works, not to judge by
  --help

Measurements:
${MEASUREMENTS.map(({ name, title }) => `  ${name.padEnd(12)}${title}`).join('\n')}

Exits with 1 when a bar is missed. Figures are also written to bench/results.json.`;

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  },
});

if (options.help) console.log(HELP);
else
  await main().catch((error: Error) => {
    console.error(`npm run bench: ${error.message}`);
    process.exitCode = 1;
  });

async function main(): Promise<void> {
  const chosen = choose(options.only);
  const machine = describeMachine();
  console.log(Object.values(machine).join('\n'));
  // The emulator needs neither, but every client does.
  Object.assign(process.env, { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench' });
  const emulator = await startDynamodb(await freePort());
  const results: Record<string, Figure[]> = {};
  try {
    for (const measurement of chosen) {
      const { quick } = options;
      const figures = await measurement.run({ quick, dynamodbEndpoint: emulator.endpoint, progress });
      progress('');
      printFigures(measurement, figures);
      results[measurement.name] = figures;
    }
  } finally {
    await emulator.stop();
  }
  const report = { measuredAt: new Date().toISOString(), quick: options.quick, machine, results };
  await writeFile('bench/results.json', `${JSON.stringify(report, null, 2)}\n`);
  const failed = Object.values(results).flat().filter(missed);
  console.log(failed.length === 0 ? '\nEvery bar is kept.' : styleText('red', `\n${failed.length} bar(s) missed.`));
  process.exitCode = failed.length === 0 ? 0 : 1;
}

function choose(only: string[] | undefined): Measurement[] {
  for (const name of only ?? [])
    if (!MEASUREMENTS.some((one) => one.name === name)) throw new Error(`there is no measurement ${name}; see --help`);
  return MEASUREMENTS.filter(({ name }) => only?.includes(name) ?? true);
}

function describeMachine(): Record<string, string> {
  const [cpu] = cpus();
  const { dependencies, optionalDependencies } = packageJson;
  return {
    machine: `${cpus().length} x ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()} ${arch()}`,
    node: `Node ${process.versions.node}, client-dynamodb ${dependencies['@aws-sdk/client-dynamodb']}`,
    emulator: `dynoxide ${optionalDependencies['@dynoxide/linux-x64']}`,
  };
}

/** The line that is overwritten while a measurement runs. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text) console.error(text);
}
