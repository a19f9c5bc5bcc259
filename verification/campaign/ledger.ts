import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The histories that one process has played, as `npm run verify -- faults --report` writes them. */
export interface Played {
  /** The seed of the first history. Each later history has the next seed. */
  seed: number;
  /** The capabilities that took part. Undefined if all did. */
  only?: string[];
  histories: number;
  operations: number;
  /** How many permits were granted. */
  permits: number;
  /** How many histories had clocks further apart than CLOCK_SKEW_MS. */
  beyondBound: number;
  failed: { seed: number; promises: string[] } | null;
}

/** All that was ever played of the same capabilities on one commit. */
interface Chapter extends Pick<Played, 'only' | 'histories' | 'operations' | 'permits' | 'beyondBound'> {
  commit: string;
  /** The first and the last seed of each stretch of seeds, in ascending order. */
  seeds: [number, number][];
  broken: { seed: number; promises: string[] }[];
}

/** The chapters, in the order in which their commits were first played. */
export type Ledger = Chapter[];

/** @returns an empty ledger if there is no such file */
export async function readLedger(file: string): Promise<Ledger> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Ledger;
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return [];
    throw error;
  }
}

export async function writeLedger(file: string, ledger: Ledger): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(ledger, undefined, 2)}\n`);
}

/** A seed that no history of the ledger has had. */
export const nextSeed = (ledger: Ledger): number =>
  ledger.length === 0
    ? Math.floor(Math.random() * 2 ** 30)
    : Math.max(...ledger.flatMap(({ seeds }) => seeds.map(([, last]) => last + 1)));

/** The ledger with what was played. */
export function entered(ledger: Ledger, commit: string, played: Played): Ledger {
  if (played.histories === 0) return ledger;
  const { only } = played;
  const isSame = (one: Chapter) => one.commit === commit && `${one.only}` === `${only}`;
  const empty = { seeds: [], histories: 0, operations: 0, permits: 0, beyondBound: 0, broken: [] };
  const chapter = ledger.find(isSame) ?? empty;
  const next: Chapter = {
    commit,
    ...(only && { only }),
    seeds: joined([...chapter.seeds, [played.seed, played.seed + played.histories - 1]]),
    histories: chapter.histories + played.histories,
    operations: chapter.operations + played.operations,
    permits: chapter.permits + played.permits,
    beyondBound: chapter.beyondBound + played.beyondBound,
    broken: played.failed ? [...chapter.broken, played.failed] : chapter.broken,
  };
  return chapter === empty ? [...ledger, next] : ledger.map((one) => (one === chapter ? next : one));
}

/** Joins stretches of seeds that touch. */
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
  const lines = ledger.map(({ commit, only, seeds, histories, operations, permits, beyondBound, broken }) => {
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
