import { type Figure, type Measurement, median, milliseconds } from './measurement.ts';
import type { ScaleResult, ScaleTask } from './scale.worker.ts';
import { inWorker } from './worker.ts';

const scale: Measurement = {
  name: 'scale',
  title: 'Scale: taking over an abandoned lease in a table of many records',
  method:
    'Domain functions. The tables were filled before, in the memory of one emulator. Blocks of twenty in random order. After each, the clock of the callers moves past the lease, so that none is refused. What DynamoDB itself does with such a table is not measured: see docs/scale.md',
  run: async (options) => {
    const task: ScaleTask = {
      sizes: options.quick ? [100, 1e3] : [1e3, 1e5, 1e6],
      repetitions: options.quick ? 1 : 9,
      samples: options.quick ? 20 : 400,
      warmUp: options.quick ? 20 : 300,
    };
    const script = new URL('scale.worker.ts', import.meta.url);
    return figures(task, await inWorker<ScaleTask, ScaleResult>(script, task, options));
  },
};

/** The bar for the median in the largest table, divided by that in the smallest one. */
const MAX_TO_FIRST = 1.2;

function figures({ sizes }: ScaleTask, found: ScaleResult): Figure[] {
  const [first = []] = found;
  return sizes.map((size, at) => {
    const times = found[at] ?? [];
    const figure: Figure = milliseconds(`acquire among ${size.toLocaleString('en')} records`, times);
    if (at === 0) return figure;
    const toFirst = median(times.map((one, repetition) => median(one) / median(first[repetition] ?? [])));
    const bar = at === sizes.length - 1 ? { bar: { measured: toFirst, max: MAX_TO_FIRST } } : {};
    return { ...figure, value: `${figure.value}, ${toFirst.toFixed(2)} x`, ...bar };
  });
}

export const scaleMeasurements: Measurement[] = [scale];
