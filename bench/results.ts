import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { arch, cpus, release, totalmem, type } from 'node:os';
import { dirname } from 'node:path';
import packageJson from '../package.json' with { type: 'json' };
import { type Bar, type Figure, type Measurement, verdict } from './measurement.ts';

export const RESULTS = 'bench/results.json';

/** bench/results.json: what was measured last, by the names of the measurements. */
export interface Results {
  measurements: Record<string, Result>;
}

export interface Result {
  title: string;
  method: string;
  measuredAt: string;
  /** Few samples: not to judge by. */
  quick: boolean;
  machine: Machine;
  /** What it could be compared with, with versions, and what not, with the reason. */
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
  const { dependencies, optionalDependencies } = packageJson;
  return {
    machine: `${cpus().length} x ${cpu?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()} ${arch()}`,
    node: `Node ${process.versions.node}`,
    sdk: `@aws-sdk/client-dynamodb ${dependencies['@aws-sdk/client-dynamodb']}`,
    emulator: `dynoxide ${optionalDependencies['@dynoxide/linux-x64']}`,
  };
}

export async function readResults(file = RESULTS): Promise<Results> {
  return JSON.parse(await readFile(file, 'utf8'));
}

/** Replaces one measurement in the file and keeps the others, each with its own date and machine. */
export async function record(
  file: string,
  { measurement, figures }: { measurement: Measurement; figures: Figure[] },
  { libraries, leftOut, quick }: Pick<Result, 'libraries' | 'leftOut' | 'quick'>,
): Promise<void> {
  const before = await readResults(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return { measurements: {} };
  });
  const result: Result = {
    title: measurement.title,
    method: measurement.method,
    measuredAt: new Date().toISOString(),
    quick,
    machine: describeMachine(),
    libraries,
    leftOut,
    figures: figures.map(rounded),
  };
  const measurements = { ...before.measurements, [measurement.name]: result };
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify({ measurements }, null, 2)}\n`);
}

/** Four digits that count: the rest is noise, and a longer diff. */
function rounded({ bar, ...figure }: Figure): RecordedFigure {
  const numbers = JSON.parse(
    JSON.stringify(figure, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)),
  );
  return {
    ...numbers,
    ...(bar && { bar: { ...bar, measured: Number(bar.measured.toPrecision(4)), verdict: verdict(bar) } }),
  };
}
