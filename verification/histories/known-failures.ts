import type { Violation } from './history.ts';

/** A promise that this version breaks, as docs/histories.md tells its users. */
interface KnownFailure {
  /** What happens, in one sentence. */
  failure: string;
  /** In the words of the checker. */
  promise: string;
  /** The courses that show it. Once one of them shows it no more, the failure is mended there, and has to leave this list. */
  courses: string[];
}

/** Histories that break these promises do not fail. Whatever else they break is a failure. */
export const KNOWN_FAILURES: readonly KnownFailure[] = [];

export const isKnown = ({ promise }: Violation): boolean => KNOWN_FAILURES.some((one) => one.promise === promise);

/** What histories have shown of them, as a person reads it. @param known in how many histories each promise was broken */
export const asLines = (known: Readonly<Record<string, number>>): string[] =>
  Object.entries(known).map(([promise, count]) => `Known to be broken, in ${count} of them: ${promise}`);

/** The list, as a person reads it. */
export const knownFailures = (): string[] =>
  KNOWN_FAILURES.length === 0
    ? []
    : [
        'These failures are known (docs/histories.md#known-failures):',
        ...KNOWN_FAILURES.map(({ failure }) => `  ${failure}`),
      ];
