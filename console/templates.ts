import htm from 'htm';
import { parseSync, Visitor } from 'rolldown/utils';

/** An element as htm reads it. */
interface Element {
  tag: unknown;
  props: Record<string, unknown> | null;
  children: unknown[];
}

/**
 * Takes the place of an expression while htm reads a template. In a text it becomes a mark, and in spread properties a property, so that it can be found
 * again.
 */
class Placeholder {
  readonly #index: number;

  constructor(index: number) {
    this.#index = index;
    Object.assign(this, { [`...${index}`]: this });
  }

  get index(): number {
    return this.#index;
  }

  toString(): string {
    return `\0${this.#index}\0`;
  }
}

/** htm itself reads the templates. Its types describe a CommonJS module, but the import is an ES module. */
const reader = htm as unknown as typeof htm.default;
const read = reader.bind(
  (tag: unknown, props: Element['props'], ...children: unknown[]): Element => ({ tag, props, children }),
);

/** Replaces each template of `html` by the calls of `html` that htm would make, so that the browser does not have to read templates. */
export function compileTemplates(code: string): string {
  const templates: Template[] = [];
  const collect = new Visitor({
    TaggedTemplateExpression(node) {
      if (node.tag.type === 'Identifier' && node.tag.name === 'html') templates.push(node);
    },
  });
  collect.visit(parseSync('page.js', code).program);
  /** The code between two positions, with its templates compiled. An outer template comes before its inner ones in the list. */
  const compiled = (from: number, to: number): string => {
    let text = '';
    let at = from;
    for (const { start, end, quasi } of templates) {
      if (start < at || end > to) continue;
      const texts = quasi.quasis.map(({ value }) => value.cooked ?? '');
      const placeholders = quasi.expressions.map((_, index) => new Placeholder(index));
      const tree = read(Object.assign(texts, { raw: texts }), ...placeholders);
      const values = quasi.expressions.map((value) => `(${compiled(value.start, value.end)})`);
      text += code.slice(at, start) + expressionOf(tree, values);
      at = end;
    }
    return text + code.slice(at, to);
  };
  return compiled(0, code.length);
}

interface Template {
  start: number;
  end: number;
  quasi: {
    quasis: { value: { cooked?: string | null } }[];
    expressions: { start: number; end: number }[];
  };
}

/** The code of a value that htm has read. @param values the code of the expressions of the template */
function expressionOf(value: unknown, values: string[]): string {
  if (value instanceof Placeholder) return values[value.index] ?? '';
  if (Array.isArray(value)) return `[${value.map((one) => expressionOf(one, values))}]`;
  if (typeof value === 'string') return textOf(value, values);
  if (value === true || value === null || value === undefined) return `${value ?? null}`;
  return elementOf(value as Element, values);
}

function elementOf({ tag, props, children }: Element, values: string[]): string {
  const [name, ...rest] = [tag, ...children].map((one) => expressionOf(one, values));
  return `html(${[name, propsOf(props, values), ...rest]})`;
}

function propsOf(props: Element['props'], values: string[]): string {
  if (props === null) return 'null';
  const properties = Object.entries(props).map(([name, value]) =>
    name.startsWith('...')
      ? `...${expressionOf(value, values)}`
      : `${JSON.stringify(name)}: ${expressionOf(value, values)}`,
  );
  return `{${properties}}`;
}

/** The code of a text, which is a template string if it contains expressions. */
function textOf(text: string, values: string[]): string {
  const parts = text.split('\0');
  if (parts.length === 1) return JSON.stringify(text);
  const raw = parts.map((part, at) =>
    at % 2 === 0 ? part.replace(/[\\`]|\$\{/g, '\\$&') : `\${${values[Number(part)]}}`,
  );
  return `\`${raw.join('')}\``;
}
