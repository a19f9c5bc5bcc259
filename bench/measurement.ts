/** A row of the table. */
export interface Figure extends Partial<Statistics> {
  what: string;
  /** The text that is printed, with its unit. */
  value: string;
  /** The unit of the numbers below. */
  unit?: string;
  /** The figure divided by that of the bare SDK. */
  toFloor?: number;
  /** The figure divided by that of the best npm library. */
  toBestLibrary?: number;
  /** Present if the figure has a limit. */
  bar?: Bar;
}

export interface Statistics {
  /** How many samples there are. */
  n: number;
  /** The median of the medians of the repetitions. */
  median: number;
  /** The 99th percentile of all samples. */
  p99: number;
  /** The lowest and the highest median of the repetitions. */
  spread: [number, number];
}

export interface Bar {
  measured: number;
  max?: number;
  min?: number;
  /** Why the bar may be missed, and the reading up to which the reason counts. */
  excuse?: { why: string; upTo: number };
}

export interface Measurement {
  /** The name for `--only`. */
  name: string;
  title: string;
  /** Whether libraries of other authors take part, which must be installed. */
  comparesLibraries?: true;
  /** How it is measured, and so what the figures do not say. */
  method: string;
  /** Further contestants that only this measurement has, and those that are missing, with the reasons. */
  libraries?(): string[];
  leftOut?(): string[];
  run(options: Options): Promise<Figure[]>;
}

export interface Options {
  /** Takes few samples, to see that the bench works, but not to judge by. */
  quick: boolean;
  dynamodbEndpoint: string;
  progress(text: string): void;
}

const isKept = ({ measured, max = Number.POSITIVE_INFINITY, min = Number.NEGATIVE_INFINITY }: Bar): boolean =>
  measured <= max && measured >= min;

const isExcused = ({ measured, max, excuse }: Bar): boolean =>
  excuse !== undefined && (max === undefined ? measured >= excuse.upTo : measured <= excuse.upTo);

/** Whether a bar is kept, is missed for a recorded reason, or is missed by more than a reason explains. */
export type Verdict = 'kept' | 'explained' | 'missed';

export const verdict = (bar: Bar): Verdict => (isKept(bar) ? 'kept' : isExcused(bar) ? 'explained' : 'missed');

/** The factor by which a figure of few samples may miss its bar. It is smaller than one request in addition to two. */
const QUICK_SLACK = 1.4;

const looser = (limit: number, factor: number) => Number((limit * factor).toPrecision(3));

/** The measurement with limits for few samples. */
export const withSlack = ({ bar, ...figure }: Figure): Figure => ({
  ...figure,
  ...(bar && {
    bar: {
      ...bar,
      ...(bar.max !== undefined && { max: looser(bar.max, QUICK_SLACK) }),
      ...(bar.min !== undefined && { min: looser(bar.min, 1 / QUICK_SLACK) }),
      ...(bar.excuse && {
        excuse: {
          ...bar.excuse,
          upTo: looser(bar.excuse.upTo, bar.max === undefined ? 1 / QUICK_SLACK : QUICK_SLACK),
        },
      }),
    },
  }),
});

export const missed = ({ bar }: Figure): boolean => bar !== undefined && verdict(bar) === 'missed';

export const sum = (values: number[]): number => values.reduce((left, right) => left + right, 0);

export const mean = (values: number[]): number => sum(values) / values.length;

/** Nearest-rank percentile. @param fraction 0.5 for the median */
function percentile(samples: number[], fraction: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? Number.NaN;
}

export const median = (samples: number[]): number => percentile(samples, 0.5);

/** @param repetitions the samples of each repetition */
export function statistics(repetitions: number[][]): Statistics {
  const medians = repetitions.map(median);
  const samples = repetitions.flat();
  return {
    n: samples.length,
    median: median(medians),
    p99: percentile(samples, 0.99),
    spread: [Math.min(...medians), Math.max(...medians)],
  };
}

/** A figure of samples in milliseconds. */
export const milliseconds = (what: string, repetitions: number[][]): Figure & Statistics => {
  const found = statistics(repetitions);
  const digits = found.median < 10 ? 2 : 0;
  return { what, value: `${found.median.toFixed(digits)} ms`, unit: 'ms', ...found };
};

/** A figure of ratios, with a bar for their median. @param ratios one for each repetition */
export const ratio = (what: string, ratios: number[], bar?: Omit<Bar, 'measured'>): Figure => {
  const found = statistics(each(ratios));
  return { what, value: found.median.toFixed(2), ...found, ...(bar && { bar: { measured: found.median, ...bar } }) };
};

/** Makes each sample a repetition of its own. */
export const each = (samples: number[]): number[][] => samples.map((sample) => [sample]);

/** Splits one long repetition into ten parts, so that its spread can be seen. */
export function inParts(samples: number[]): number[][] {
  const size = samples.length / 10;
  return Array.from({ length: 10 }, (_, at) => samples.slice(at * size, (at + 1) * size));
}

/** Shuffles in place (Fisher-Yates), so that no contestant always runs first. */
export function shuffle<T>(list: T[]): T[] {
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [list[last], list[other]] = [list[other] as T, list[last] as T];
  }
  return list;
}
