import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { listen } from '../../local/listen.ts';

export interface Write {
  writer: string;
  fence?: number;
  /** When the write arrived, on the bench's clock of `performance.now()`. */
  at: number;
}

export interface Store {
  url: string;
  /** All writes, in the order of their arrival. */
  writes: Write[];
  /** @returns the first write of a writer, or undefined if none has come within the time */
  first(writer: string, withinMs: number): Promise<Write | undefined>;
  stop(): Promise<void>;
}

/** The store that holders of a lock write to. It accepts every write. What a store with fences would refuse is computed afterwards. */
export async function startStore(): Promise<Store> {
  const writes: Write[] = [];
  const { url, stop } = await listen(async (request, response) => {
    writes.push({ ...JSON.parse(await text(request)), at: performance.now() });
    response.end();
  });
  return {
    url,
    writes,
    stop,
    first: async (writer, withinMs) => {
      for (const until = performance.now() + withinMs; ; await delay(5)) {
        const found = writes.find((write) => write.writer === writer);
        if (found || performance.now() > until) return found;
      }
    },
  };
}

export interface Doubles {
  /** Writes of the first holder after the second holder has begun to write. */
  without: number;
  /** How many of these writes a store that refuses lower fences would still accept. Undefined without fences. */
  withFences: number | undefined;
}

/** @param writes the writes of the first and of the second holder */
export function doubleWrites(writes: Write[], first: string, second: string): Doubles {
  const begun = writes.findIndex(({ writer }) => writer === second);
  if (begun < 0) return { without: 0, withFences: writes.some(({ fence }) => fence !== undefined) ? 0 : undefined };
  const late = writes.slice(begun).filter(({ writer }) => writer === first);
  const { fence: highest } = writes[begun] ?? {};
  return {
    without: late.length,
    withFences: highest === undefined ? undefined : late.filter(({ fence = 0 }) => fence >= highest).length,
  };
}
