import type { Item } from './types.ts';

/**
 * An interpreter of DynamoDB's condition and update expressions on plain values, so that the model checks the very strings that the
 * product sends.
 */
interface Scope {
  item: Item;
  names: Record<string, string>;
  values: Item;
}
type Value = (scope: Scope) => unknown;
type Test = (scope: Scope) => boolean;

export const clone = <T>(value: T): T => structuredClone(value);

class Parser {
  readonly #tokens: string[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = text.match(/[#:]?[A-Za-z_]\w*(?:\.#?\w+)*|<=|>=|<>|[-=<>+(),]|\d+/g) ?? [];
  }

  get rest(): string {
    return this.#tokens.slice(this.#at).join(' ');
  }

  condition(): Test {
    let left = this.#and();
    while (this.#takes('OR')) {
      const [one, other] = [left, this.#and()];
      left = (scope) => one(scope) || other(scope);
    }
    return left;
  }

  update(): { sets: [string, Value][]; removes: string[] } {
    const sets: [string, Value][] = [];
    const removes: string[] = [];
    while (this.#at < this.#tokens.length) {
      const clause = this.#next().toUpperCase();
      do {
        const name = this.#next();
        if (clause === 'SET') {
          this.#expect('=');
          sets.push([name, this.#sum()]);
        } else removes.push(name);
      } while (this.#takes(','));
    }
    return { sets, removes };
  }

  #and(): Test {
    let left = this.#not();
    while (this.#takes('AND')) {
      const [one, other] = [left, this.#not()];
      left = (scope) => one(scope) && other(scope);
    }
    return left;
  }

  #not(): Test {
    if (this.#takes('NOT')) {
      const test = this.#not();
      return (scope) => !test(scope);
    }
    if (this.#takes('(')) {
      const test = this.condition();
      this.#expect(')');
      return test;
    }
    for (const [word, wanted] of [
      ['ATTRIBUTE_EXISTS', true],
      ['ATTRIBUTE_NOT_EXISTS', false],
    ] as const)
      if (this.#takes(word)) {
        this.#expect('(');
        const value = this.#operand();
        this.#expect(')');
        return (scope) => (value(scope) !== undefined) === wanted;
      }
    const left = this.#operand();
    if (this.#takes('IN')) return this.#oneOf(left);
    const operator = this.#next();
    const right = this.#operand();
    return (scope) => compares(left(scope), operator, right(scope));
  }

  #oneOf(left: Value): Test {
    this.#expect('(');
    const values = [this.#operand()];
    while (this.#takes(',')) values.push(this.#operand());
    this.#expect(')');
    return (scope) => values.some((value) => compares(left(scope), '=', value(scope)));
  }

  #sum(): Value {
    let left = this.#term();
    while (this.#tokens[this.#at] === '+' || this.#tokens[this.#at] === '-') {
      const operator = this.#next();
      const [one, other] = [left, this.#term()];
      left = (scope) => {
        const [a, b] = [one(scope), other(scope)];
        if (typeof a !== 'number' || typeof b !== 'number') throw new Error('ValidationException: no number');
        return operator === '+' ? a + b : a - b;
      };
    }
    return left;
  }

  #term(): Value {
    if (!this.#takes('IF_NOT_EXISTS')) return this.#operand();
    this.#expect('(');
    const value = this.#operand();
    this.#expect(',');
    const instead = this.#operand();
    this.#expect(')');
    return (scope) => value(scope) ?? instead(scope);
  }

  #operand(): Value {
    const token = this.#next();
    if (token.startsWith(':')) return ({ values }) => values[token];
    return (scope) => at(scope.item, pathOf(token, scope));
  }

  #next(): string {
    return this.#tokens[this.#at++] ?? '';
  }

  #takes(word: string): boolean {
    const found = this.#tokens[this.#at]?.toUpperCase() === word;
    if (found) this.#at++;
    return found;
  }

  #expect(word: string): void {
    if (!this.#takes(word)) throw new Error(`expected ${word} before ${this.rest}`);
  }
}

/** `#h.e`: the attribute that `#h` stands for, and its element `e`. */
const pathOf = (token: string, { names }: Scope): string[] =>
  token.split('.').map((part) => (part.startsWith('#') ? (names[part] ?? part) : part));

const at = (item: unknown, path: readonly string[]): unknown =>
  path.reduce((value, name) => (value as Item | undefined)?.[name], item);

/** As DynamoDB: an attribute that is not there compares with nothing. */
function compares(left: unknown, operator: string, right: unknown): boolean {
  if (left === undefined || right === undefined) return false;
  if (operator === '=') return left === right;
  if (operator === '<>') return left !== right;
  const [a, b] = [left as number, right as number];
  return operator === '<' ? a < b : operator === '>' ? a > b : operator === '<=' ? a <= b : a >= b;
}

const conditions = new Map<string, Test>();
const updates = new Map<string, ReturnType<Parser['update']>>();

function parsed<T>(cache: Map<string, T>, text: string, parse: (parser: Parser) => T): T {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const parser = new Parser(text);
  const made = parse(parser);
  if (parser.rest) throw new Error(`left over: ${parser.rest}`);
  cache.set(text, made);
  return made;
}

interface Expressions {
  names?: Record<string, string>;
  values?: Item;
}

export function holds(
  condition: string | undefined,
  item: Item | undefined,
  { names = {}, values = {} }: Expressions,
): boolean {
  if (!condition) return true;
  return parsed(conditions, condition, (parser) => parser.condition())({ item: item ?? {}, names, values });
}

/** @returns the new item. @throws Error where DynamoDB answers ValidationException */
export function applied(update: string, item: Item | undefined, { names = {}, values = {} }: Expressions): Item {
  const scope: Scope = { item: item ?? {}, names, values };
  const { sets, removes } = parsed(updates, update, (parser) => parser.update());
  const set = sets.map(([token, value]) => [pathOf(token, scope), clone(value(scope))] as const);
  const removed = removes.map((token) => pathOf(token, scope));
  const paths = [...set.map(([path]) => path), ...removed].map((path) => path.join('.'));
  const overlap = paths.some((one, n) => paths.some((other, m) => n !== m && `${other}.`.startsWith(`${one}.`)));
  if (overlap) throw new Error('ValidationException: two paths overlap');
  const next = clone(scope.item);
  for (const [path, value] of set) {
    if (value === undefined) throw new Error('ValidationException: no such operand');
    parentOf(next, path)[path.at(-1) ?? ''] = value;
  }
  for (const path of removed) delete parentOf(next, path)[path.at(-1) ?? ''];
  return next;
}

function parentOf(item: Item, path: readonly string[]): Item {
  const parent = at(item, path.slice(0, -1)) as Item | undefined;
  if (parent === undefined) throw new Error('ValidationException: the document path is not valid');
  return parent;
}
