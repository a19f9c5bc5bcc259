import { IDLE, type Party, type State } from './state.ts';

const hashes = new Map<string, number>();
/** The hash of a text, as a number above all fences. */
function hashOf(text: string): number {
  const known = hashes.get(text);
  if (known !== undefined) return known;
  let hash = 0x811c9dc5;
  for (let k = 0; k < text.length; k++) hash = Math.imul(hash ^ text.charCodeAt(k), 0x01000193);
  hashes.set(text, 8e9 + hash);
  return 8e9 + hash;
}

const tokens: number[] = [];
const fences: number[] = [];

function walk(x: unknown): void {
  if (typeof x === 'number') {
    tokens.push(x);
    if (x >= 1000) fences.push(x);
  } else if (typeof x === 'string') tokens.push(hashOf(x));
  else if (typeof x === 'boolean') tokens.push(x ? 101 : 102);
  else if (x === null || x === undefined) tokens.push(103);
  else if (Array.isArray(x)) {
    tokens.push(104);
    for (const y of x) walk(y);
    tokens.push(105);
  } else {
    tokens.push(106);
    for (const name in x) walk((x as Record<string, unknown>)[name]);
  }
}

function walkParty(p: Party): void {
  if (p === IDLE) return void tokens.push(107);
  tokens.push(p.left, p.run, p.tries, p.tok, p.ticket, p.empty ? 101 : 102, hashOf(p.st), hashOf(p.cont));
  for (const part of [p.held, p.op, p.seen, p.next])
    if (part) walk(part);
    else tokens.push(103);
  if (p.end.length > 0) walk(p.end);
}

const budgets = new WeakMap<object, number>();
function budgetOf(bud: State['bud']): number {
  const known = budgets.get(bud) ?? hashOf(Object.values(bud).join());
  budgets.set(bud, known);
  return known;
}

const order = new Map<number, number>();
const ids = new Map<number, number>();
/** Renames a number, because only the order and the nearness of fences and instants count, and of ids (the negative numbers) only which are equal. */
function renamed(x: number): number {
  if (x > -10 && x < 1000) return x + 14;
  if (x >= 4e9) return x - 8e9;
  if (x >= 1000) return 77_000_000 + Number(order.get(x));
  const id = ids.get(x) ?? ids.size;
  ids.set(x, id);
  return 99_000_000 + id;
}

/** A hash of 53 bits. The chance is one in two thousand that two of three million states have the same hash. */
export function nameOf(s: State): number {
  tokens.length = 0;
  fences.length = 0;
  walk(s.rec);
  walk(s.rows);
  for (const p of s.ps) walkParty(p);
  walkParty(s.outside);
  walk(s.late);
  walk(s.crate);
  for (const list of [s.ended, s.leaving, s.withdrawn, s.joined, s.notified]) walk(list);
  walk(s.top);
  if (s.operator) walk(s.operator);
  tokens.push(budgetOf(s.bud), s.wiped ? 101 : 102, s.odd ? 101 : 102);
  order.clear();
  ids.clear();
  let [last, to] = [0, 0];
  for (const x of fences.sort((a, b) => a - b)) {
    to += Math.min(x - last, 4);
    order.set(x, to);
    last = x;
  }
  let [h1, h2] = [0xdeadbeef ^ Math.min(s.clock - last, 4), 0x41c6ce57];
  for (const x of tokens) {
    const y = renamed(x);
    h1 = Math.imul(h1 ^ y, 2654435761);
    h2 = Math.imul(h2 ^ y, 1597334677);
    h1 ^= h2 >>> 15;
    h2 ^= h1 >>> 13;
  }
  h1 = Math.imul(h1 ^ (h1 >>> 16), 2246822507) ^ Math.imul(h2 ^ (h2 >>> 13), 3266489909);
  h2 = Math.imul(h2 ^ (h2 >>> 16), 2246822507) ^ Math.imul(h1 ^ (h1 >>> 13), 3266489909);
  return 4294967296 * (2097151 & h2) + (h1 >>> 0);
}
