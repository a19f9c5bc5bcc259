import { WINDOW_SECONDS } from '../../shared/locks/dependencies.ts';
import { copyOf } from './proxy.ts';

/** The lines that the processes write. `at` is in milliseconds of a clock that all processes share. */
export type Line =
  | { type: 'step'; key: string; fence: number; holder: string; at: number }
  | { type: 'success'; holder: string }
  | { type: 'failure'; holder: string; code: string; reason?: string; detail: string }
  | { type: 'done'; holder: string; at: number };

/** The errors that a caller may receive from a service under faults. */
const EXPECTED = [
  'LeaseHeld',
  'LeaseLost',
  'Unreachable',
  'OutcomeUnknown',
  'Unavailable',
  'Throttled',
  'TimeoutError',
];

/** The record of a key after the end of all processes. */
export interface Left {
  key: string;
  state: string;
  holder: string | null;
  fence: number | null;
  ttlSeconds: number | null;
}

/** The promises of the client that did not hold, a line for each case. */
export interface Broken {
  /** Two holders worked at once. */
  overlaps: string[];
  /** A lease was left that no process will release. */
  leasesLeft: string[];
  /** A caller received an error that no fault explains. */
  surprises: string[];
}

interface Excused {
  /** The holders that were killed, and so do not release. */
  killed: Set<string>;
  /** Fences that only the copy of a request was granted. */
  copies: Set<number>;
  /** The acquisitions that arrived twice, by `copyOf`: the second copy may wait in line by itself (proxy.ts). */
  copied: Set<string>;
}

/** The broken promises that the lines and the remaining leases show. */
export const broken = (lines: Line[], left: Left[], excuse: Excused): Broken => ({
  overlaps: overlaps(lines),
  leasesLeft: abandoned(left, excuse),
  surprises: surprises(lines),
});

/** All work under a fence must be over before any work begins under a higher one. */
function overlaps(lines: Line[]): string[] {
  const works = new Map<string, { key: string; fence: number; holders: Set<string>; first: number; last: number }>();
  for (const line of lines) {
    if (line.type !== 'step') continue;
    const { key, fence, holder, at } = line;
    const name = `${key} ${fence}`;
    const work = works.get(name) ?? { key, fence, holders: new Set<string>(), first: at, last: at };
    works.set(name, work);
    work.holders.add(holder);
    work.first = Math.min(work.first, at);
    work.last = Math.max(work.last, at);
  }
  const complaints: string[] = [];
  const sorted = [...works.values()].sort((a, b) => (a.key === b.key ? a.fence - b.fence : a.key < b.key ? -1 : 1));
  let before: (typeof sorted)[number] | undefined;
  for (const work of sorted) {
    if (work.holders.size > 1) complaints.push(`${work.key}: several worked under the fence ${work.fence}`);
    if (before?.key === work.key && before.last >= work.first)
      complaints.push(
        `${work.key}: ${[...before.holders]} worked under ${before.fence} ${before.last - work.first} ms after ${[...work.holders]} had begun under ${work.fence}`,
      );
    if (before?.key !== work.key || before.last < work.last) before = work;
  }
  return complaints;
}

const surprises = (lines: Line[]): string[] =>
  lines.flatMap((line) =>
    line.type === 'failure' && !EXPECTED.includes(line.code) ? [`${line.holder} met ${line.detail}`] : [],
  );

/** Leases that may be left: those of killed processes, and those that only the copy of a request was granted. */
export function excused(left: Left[], excuse: Excused) {
  const expired = left.filter(({ state }) => state === 'expired');
  const leasesOfKilled = expired.filter(({ holder }) => excuse.killed.has(`${holder}`)).length;
  const leasesOfCopies = expired.filter((one) => isOfCopy(one, excuse) && !excuse.killed.has(`${one.holder}`)).length;
  return { leasesOfKilled, leasesOfCopies };
}

/** No worker asks for such a short ttl, so a grant with that ttl was never claimed. */
const isUnclaimed = ({ ttlSeconds }: Left): boolean => ttlSeconds === WINDOW_SECONDS;

/** The client withdraws the ticket that it knows. A second copy may have another ticket, and is granted the lease after its process has left. */
const isOfCopy = (one: Left, { copies, copied }: Excused): boolean =>
  copies.has(one.fence ?? -1) || (isUnclaimed(one) && copied.has(copyOf(one)));

const abandoned = (left: Left[], excuse: Excused): string[] =>
  left
    .filter(
      (one) =>
        one.state === 'held' ||
        (one.state === 'expired' && !excuse.killed.has(`${one.holder}`) && !isOfCopy(one, excuse)),
    )
    .map(({ key, state, holder, fence }) => `${key} is left ${state} by ${holder}, under ${fence}`);
