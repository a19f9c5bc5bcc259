/**
 * A process that calls every function with large payloads of many shapes, one line of JSON for each. Memory is measured
 * by the high-water mark of the whole process, so that nothing can hide, and with a small young generation, so that
 * garbage counts for little.
 */
import { httpEvent, lambdaContext, throughHttp, throughTask } from '../support/stack/adapters.ts';
import { type Functions, loadFunctions, SHAPES } from './functions.ts';

/** The calls that the process has to send. */
export interface Sent {
  sizeMiB: number;
  /** Names of SHAPES. */
  shapes: string[];
  /** The names of the functions to call. If the list is empty, every function is called. */
  only: string[];
}

const { functions, sizeMiB, shapes, only }: Sent & { functions: Functions } = JSON.parse(process.argv[2] ?? '');

/** A call, and its outcome. */
export interface LargeCall {
  name: string;
  through: 'http' | 'task';
  shape: string;
  outcome: string;
  status: number | undefined;
  answerBytes: number;
  /** By how much the process has needed more memory than ever before. */
  grewMiB: number;
}

/** Each function with the fields that it accepts. */
const FUNCTIONS = (await loadFunctions(functions)).map(({ name, make, method, schemas }) => {
  const fields = new Set(schemas.flatMap(({ properties = {} }) => Object.keys(properties)));
  return [name, method, make(), name === 'executionEnded' ? ['execution', 'again'] : [...fields]] as const;
});

/** Valid fields, without which a call would be refused before the large field is checked. */
const BASE: Record<string, object> = {
  publish: { op: 'publishGraphSource', alias: 'a:b', sourceType: 's', config: {}, dependencies: [] },
  commit: { path: '/', ifNoneMatch: '*', body: '' }, // never sent: a body of 2 MiB of escapes may be one to commit
  acquire: { key: 'k', holder: 'h' },
  clean: {},
};

const MIB = 1024 ** 2;
const bytes = sizeMiB * MIB;
const called = FUNCTIONS.filter(([name]) => only.length === 0 || only.includes(name));
/** How many fields of a function are tried. The largest values take long to make. */
const MAX_FIELDS = bytes > 4 * MIB ? 3 : 9;

/** A flat string, as a body arrives, and not a rope of the parts that it was made from. */
const flat = (text: string) => Buffer.from(text).toString();

/** Every call notes by how much the process has needed more memory than ever before. */
async function measure(call: Pick<LargeCall, 'name' | 'through' | 'shape'>, act: () => ReturnType<typeof throughTask>) {
  // Garbage of earlier calls must not count as memory of this one. To collect it before each call would take minutes.
  if (process.memoryUsage().heapUsed > heapOfAll + 20 * MIB) globalThis.gc?.();
  const before = process.resourceUsage().maxRSS;
  const { outcome, status, body } = await act();
  const grewMiB = (process.resourceUsage().maxRSS - before) / 1024;
  const done: LargeCall = { ...call, outcome, status, answerBytes: JSON.stringify(body).length, grewMiB };
  process.stdout.write(`${JSON.stringify(done)}\n`);
}

// A first call of each function, so that loading it does not count.
for (const [, method, handler] of called)
  await throughHttp(handler, httpEvent(method, { body: '{"x":1}', query: 'x=1' }));

let heapOfAll = 0;
for (const [shape, make] of Object.entries(SHAPES).filter(([name]) => shapes.includes(name))) {
  const value = flat(make(bytes));
  const encoded = Buffer.from(value).toString('base64');
  const query = encodeURIComponent(value.slice(0, bytes / 8));
  const parsed: unknown = JSON.parse(value);
  globalThis.gc?.();
  heapOfAll = process.memoryUsage().heapUsed;
  for (const [name, method, handler, fields] of called) {
    const http = (event: Parameters<typeof httpEvent>[1], what = shape) =>
      measure({ name, through: 'http', shape: what }, () => throughHttp(handler, httpEvent(method, event)));
    const task = (payload: unknown, what = shape) =>
      measure({ name, through: 'task', shape: what }, () => throughTask(handler, payload, lambdaContext()));
    await task(parsed);
    if (method === 'POST') await http({ body: value });
    if (method === 'POST') await http({ body: encoded, base64: true }, `${shape}, as base64`);
    for (const field of [...fields.slice(0, MAX_FIELDS), 'unknown']) {
      const what = `${field}: ${shape}`;
      const base = Object.entries(BASE[name] ?? {}).filter(([other]) => other !== field);
      await task(Object.fromEntries([...base, [field, parsed]]), what);
      const others = base.map(([other, held]) => `${JSON.stringify(other)}:${JSON.stringify(held)},`).join('');
      await http(
        method === 'GET' ? { query: `${field}=${query}` } : { body: flat(`{${others}"${field}":${value}}`) },
        what,
      );
    }
  }
}
