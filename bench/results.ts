import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { arch, cpus, release, totalmem, type } from 'node:os';
import { dirname } from 'node:path';
import localPackage from '../local/package.json' with { type: 'json' };
import packageJson from '../package.json' with { type: 'json' };
import { type Bar, type Figure, type Measurement, verdict } from './measurement.ts';

export const RESULTS = 'bench/results.json';

/** The content of bench/results.json: the last results, by the name of the measurement. */
export interface Results {
  measurements: Record<string, Result>;
}

export interface Result {
  title: string;
  method: string;
  measuredAt: string;
  /** True for few samples, which are not to judge by. */
  quick: boolean;
  machine: Machine;
  /** The contestants with their versions, and those that were left out, with the reasons. */
  libraries: string[];
  leftOut: string[];
  figures: RecordedFigure[];
}

interface RecordedFigure extends Omit<Figure, 'bar'> {
  bar?: Bar & { verdict: string };
}

interface Machine {
  machine: string;
  node: string;
  sdk: string;
  emulator: string;
}

export function describeMachine(): Machine {
  const [cpu] = cpus();
  const { dependencies } = packageJson;
  return {
    machine: `${cpus().length} x ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()} ${arch()}`,
    node: `Node ${process.versions.node}`,
    sdk: `@aws-sdk/client-dynamodb ${dependencies['@aws-sdk/client-dynamodb']}`,
    emulator: `dynoxide ${localPackage.optionalDependencies['@dynoxide/linux-x64']}`,
  };
}

export async function readResults(file = RESULTS): Promise<Results> {
  return JSON.parse(await readFile(file, 'utf8'));
}

/** The facts that all measurements of a run share. */
export type RunFacts = Pick<Result, 'measuredAt' | 'libraries' | 'leftOut' | 'quick'>;

/** Replaces one measurement in the file and keeps the others, each with its own date and machine. */
export async function record(
  file: string,
  { measurement, figures }: { measurement: Measurement; figures: Figure[] },
  { measuredAt, libraries, leftOut, quick }: RunFacts,
): Promise<void> {
  const { measurements } = await readOrBegin(file);
  const result: Result = {
    title: measurement.title,
    method: measurement.method,
    ...{ measuredAt, quick, machine: describeMachine(), libraries, leftOut },
    figures: figures.map(rounded),
  };
  await write(file, { measurements: { ...measurements, [measurement.name]: result } });
}

/** Removes results of measurements that no longer exist. @param names the measurements that exist */
export async function keepOnly(file: string, names: string[]): Promise<void> {
  const { measurements } = await readOrBegin(file);
  const kept = Object.entries(measurements).filter(([name]) => names.includes(name));
  await write(file, { measurements: Object.fromEntries(kept) });
}

const readOrBegin = (file: string): Promise<Results> =>
  readResults(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return { measurements: {} };
  });

async function write(file: string, results: Results): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
}

/** Measurements of the same day and machine. */
interface Run {
  /** The day and the machine. */
  when: string;
  /** The names of the measurements. */
  names: string[];
}

/** @returns the runs, that with the most measurements first. There is only one if all figures belong together */
export function runsOf({ measurements }: Results): Run[] {
  const runs = new Map<string, string[]>();
  for (const [name, { measuredAt, machine }] of Object.entries(measurements)) {
    const when = `Measured on ${measuredAt.slice(0, 10)}: ${Object.values(machine).join(', ')}`;
    runs.set(when, [...(runs.get(when) ?? []), name]);
  }
  return [...runs]
    .map(([when, names]) => ({ when, names }))
    .toSorted((left, right) => right.names.length - left.names.length);
}

/** Keeps four significant digits. The rest is noise, and makes diffs longer. */
function rounded({ bar, ...figure }: Figure): RecordedFigure {
  const numbers = JSON.parse(
    JSON.stringify(figure, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)),
  );
  return {
    ...numbers,
    ...(bar && { bar: { ...bar, measured: Number(bar.measured.toPrecision(4)), verdict: verdict(bar) } }),
  };
}
