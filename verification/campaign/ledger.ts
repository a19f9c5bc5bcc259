import { readFile, writeFile } from 'node:fs/promises';
import { type FaultCounts, type FaultKind, noFaults } from '../histories/faults.ts';

/** What one process has played, as `npm run verify -- faults --report` writes it. */
export interface Played {
  /** The seed of its first history. Each that follows has the next one. */
  seed: number;
  /** The capabilities that took part; absent where all did. */
  only?: string[];
  histories: number;
  operations: number;
  /** How many permits were granted. */
  permits: number;
  /** How many had clocks further apart than CLOCK_SKEW_MS. */
  beyondBound: number;
  counts: FaultCounts;
  failed: { seed: number; promises: string[] } | null;
  /** In how many histories each promise was broken that is known to be (verification/histories/known-failures.ts). */
  known?: Record<string, number>;
}

/** All that was ever played of the same capabilities on one commit. */
interface Chapter {
  commit: string;
  only?: string[];
  /** First and last seed of each stretch, in their order. */
  seeds: [number, number][];
  histories: number;
  operations: number;
  permits?: number;
  beyondBound: number;
  faults: FaultCounts;
  broken: { seed: number; promises: string[] }[];
}

/** In the order in which commits were first played. */
export type Ledger = Chapter[];

const FIRST_SEED = 1_000_000;

export async function readLedger(file: string): Promise<Ledger> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Ledger;
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return [];
    throw error;
  }
}

export const writeLedger = (file: string, ledger: Ledger): Promise<void> =>
  writeFile(file, `${JSON.stringify(ledger, undefined, 2).replace(/\[\s+(\d+),\s+(\d+)\s+\]/g, '[$1, $2]')}\n`);

/** A seed that no history of any commit had. */
export const nextSeed = (ledger: Ledger): number =>
  Math.max(FIRST_SEED, ...ledger.flatMap(({ seeds }) => seeds.map(([, last]) => last + 1)));

/** The ledger with what was played. */
export function entered(ledger: Ledger, commit: string, played: Played): Ledger {
  if (played.histories === 0) return ledger;
  const { only } = played;
  const isSame = (one: Chapter) => one.commit === commit && `${one.only}` === `${only}`;
  const empty: Chapter = {
    commit,
    ...(only && { only }),
    seeds: [],
    histories: 0,
    operations: 0,
    beyondBound: 0,
    faults: noFaults(),
    broken: [],
  };
  const chapter = ledger.find(isSame) ?? empty;
  const kinds = Object.keys(played.counts) as FaultKind[];
  const next: Chapter = {
    commit,
    ...(only && { only }),
    seeds: joined([...chapter.seeds, [played.seed, played.seed + played.histories - 1]]),
    histories: chapter.histories + played.histories,
    operations: chapter.operations + played.operations,
    permits: (chapter.permits ?? 0) + played.permits,
    beyondBound: chapter.beyondBound + played.beyondBound,
    faults: {
      ...chapter.faults,
      ...(Object.fromEntries(
        kinds.map((kind) => [kind, (chapter.faults[kind] ?? 0) + played.counts[kind]]),
      ) as FaultCounts),
    },
    broken: played.failed ? [...chapter.broken, played.failed] : chapter.broken,
  };
  return ledger.includes(chapter) ? ledger.map((one) => (one === chapter ? next : one)) : [...ledger, next];
}

/** Stretches that touch become one. */
function joined(stretches: [number, number][]): [number, number][] {
  const found: [number, number][] = [];
  for (const [from, to] of stretches.toSorted((a, b) => a[0] - b[0])) {
    const last = found.at(-1);
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else found.push([from, to]);
  }
  return found;
}

/** The ledger as a person reads it. */
export function summary(ledger: Ledger): string {
  const lines = ledger.map(({ commit, only, seeds, histories, operations, permits = 0, beyondBound, broken }) => {
    const stretches = seeds.map(([from, to]) => `${from}-${to}`).join(', ');
    const outcome =
      broken.length === 0
        ? 'no promise broken'
        : broken.map(({ seed, promises }) => `seed ${seed}: ${promises.join(', ')}`).join('; ');
    const of = only ? ` of ${only.join(', ')}` : '';
    const size = `${histories} histories${of} (${beyondBound} with clocks beyond the bound), ${operations} calls, ${permits} permits`;
    return `${commit}: ${size}, seeds ${stretches}: ${outcome}`;
  });
  const total = ledger.reduce((sum, { histories }) => sum + histories, 0);
  return [...lines, `${total} histories in all`].join('\n');
}
