/** One line of the table. */
export interface Figure extends Partial<Statistics> {
  what: string;
  /** As it is printed, with its unit. */
  value: string;
  /** Of the numbers below. */
  unit?: string;
  /** By the same of the bare SDK. */
  toFloor?: number;
  /** By the same of the best npm library. */
  toBestLibrary?: number;
  /** Present if there is a limit to keep. */
  bar?: Bar;
}

export interface Statistics {
  /** Samples. */
  n: number;
  /** Of the medians of the repetitions. */
  median: number;
  /** Of all samples. */
  p99: number;
  /** The lowest and the highest median of a repetition. */
  spread: [number, number];
}

export interface Bar {
  measured: number;
  most?: number;
  least?: number;
  /** Why it may be missed, and by how much: the reading beyond which the reason does not hold. */
  excuse?: { why: string; upTo: number };
}

export interface Measurement {
  /** For `--only`. */
  name: string;
  title: string;
  /** Whether the libraries of other authors take part, which are installed for it. */
  comparesLibraries?: true;
  /** How it is measured, and what the figures therefore do not say. */
  method: string;
  /** What else takes part than the contestants of the other measurements, and what is missing, each with the reason. */
  libraries?(): string[];
  leftOut?(): string[];
  run(options: Options): Promise<Figure[]>;
}

export interface Options {
  /** Fewer samples: to see that the bench works, not to judge by. */
  quick: boolean;
  dynamodbEndpoint: string;
  progress(text: string): void;
}

const isKept = ({ measured, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY }: Bar): boolean =>
  measured <= most && measured >= least;

const isExcused = ({ measured, most, excuse }: Bar): boolean =>
  excuse !== undefined && (most === undefined ? measured >= excuse.upTo : measured <= excuse.upTo);

/** Kept, over it for a reason on record, or over it without one that reaches so far. */
export type Verdict = 'kept' | 'explained' | 'missed';

export const verdict = (bar: Bar): Verdict => (isKept(bar) ? 'kept' : isExcused(bar) ? 'explained' : 'missed');

/** The factor by which a figure of few samples may miss its bar: less than one request on top of two. */
const QUICK_SLACK = 1.4;

const looser = (limit: number, factor: number) => Number((limit * factor).toPrecision(3));

/** The same with limits for few samples. */
export const withSlack = ({ bar, ...figure }: Figure): Figure => ({
  ...figure,
  ...(bar && {
    bar: {
      ...bar,
      ...(bar.most !== undefined && { most: looser(bar.most, QUICK_SLACK) }),
      ...(bar.least !== undefined && { least: looser(bar.least, 1 / QUICK_SLACK) }),
      ...(bar.excuse && {
        excuse: {
          ...bar.excuse,
          upTo: looser(bar.excuse.upTo, bar.most === undefined ? 1 / QUICK_SLACK : QUICK_SLACK),
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

/** @param repetitions the samples of each */
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

/** A figure of ratios, and what their median may be. @param ratios of each repetition */
export const ratio = (what: string, ratios: number[], bar?: Omit<Bar, 'measured'>): Figure => {
  const found = statistics(each(ratios));
  return { what, value: found.median.toFixed(2), ...found, ...(bar && { bar: { measured: found.median, ...bar } }) };
};

/** Where each sample is a repetition. */
export const each = (samples: number[]): number[][] => samples.map((sample) => [sample]);

/** Ten parts, one after the other, that the spread of one long repetition can be told. */
export function inParts(samples: number[]): number[][] {
  const size = samples.length / 10;
  return Array.from({ length: 10 }, (_, at) => samples.slice(at * size, (at + 1) * size));
}

/** In place (Fisher-Yates), so that no contestant always runs first. */
export function shuffle<T>(list: T[]): T[] {
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [list[last], list[other]] = [list[other] as T, list[last] as T];
  }
  return list;
}
