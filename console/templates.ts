import type { CallExpression, Expression, Node, Property, SpreadElement, TemplateLiteral } from 'estree';
import htm from 'htm';

/** An element as htm has read it. */
interface Element {
  tag: unknown;
  props: Record<string, unknown> | null;
  children: unknown[];
}

/** Stands for an expression of a template. In a text it leaves its place, and among others' properties its spread. */
class Slot {
  readonly #place: number;

  constructor(place: number) {
    this.#place = place;
    Object.assign(this, { [`...${place}`]: this });
  }

  get place(): number {
    return this.#place;
  }

  toString(): string {
    return `\0${this.#place}\0`;
  }
}

/** htm itself reads the templates. Its types are those of a CommonJS module, which its import is not. */
const reader = htm as unknown as typeof htm.default;
const read = reader.bind(
  (tag: unknown, props: Element['props'], ...children: unknown[]): Element => ({ tag, props, children }),
);

/** Turns each template of `html` into the calls of `html` that htm would make of it, so that the page need not read them. */
export function compileTemplates(program: Node): void {
  each(program, (node) => {
    if (node.type !== 'TaggedTemplateExpression' || node.tag.type !== 'Identifier' || node.tag.name !== 'html') return;
    const { quasis, expressions } = node.quasi;
    const texts = quasis.map(({ value }) => value.cooked ?? '');
    const slots = expressions.map((_, place) => new Slot(place));
    const tree = read(Object.assign(texts, { raw: texts }), ...slots);
    const compiled = expressionOf(tree, expressions);
    for (const key of Object.keys(node)) Reflect.deleteProperty(node, key);
    Object.assign(node, compiled);
  });
}

function each(node: unknown, act: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return;
  for (const child of Object.values(node)) each(child, act); // the inner ones first
  if ('type' in node) act(node as Node);
}

function expressionOf(value: unknown, slots: Expression[]): Expression {
  if (value instanceof Slot) return slots[value.place] as Expression;
  if (Array.isArray(value)) return { type: 'ArrayExpression', elements: value.map((one) => expressionOf(one, slots)) };
  if (typeof value === 'string') return textOf(value, slots);
  if (value === true || value === null || value === undefined) return { type: 'Literal', value: value ?? null };
  return elementOf(value as Element, slots);
}

function elementOf({ tag, props, children }: Element, slots: Expression[]): CallExpression {
  const all = [tag, ...children].map((one) => expressionOf(one, slots));
  const [name, ...rest] = all as [Expression, ...Expression[]];
  const given = propsOf(props, slots);
  return {
    type: 'CallExpression',
    optional: false,
    callee: { type: 'Identifier', name: 'html' },
    arguments: [name, given, ...rest],
  };
}

function propsOf(props: Element['props'], slots: Expression[]): Expression {
  if (props === null) return { type: 'Literal', value: null };
  const properties = Object.entries(props).map(([name, value]): Property | SpreadElement =>
    name.startsWith('...')
      ? { type: 'SpreadElement', argument: expressionOf(value, slots) }
      : {
          ...{ type: 'Property', kind: 'init', computed: false, method: false, shorthand: false },
          ...{ key: { type: 'Literal', value: name }, value: expressionOf(value, slots) },
        },
  );
  return { type: 'ObjectExpression', properties };
}

/** What is put together of texts and expressions is a text. */
function textOf(text: string, slots: Expression[]): Expression {
  const parts = text.split('\0');
  if (parts.length === 1) return { type: 'Literal', value: text };
  const quasis = parts
    .filter((_, at) => at % 2 === 0)
    .map((cooked, at, { length }) => ({
      type: 'TemplateElement' as const,
      tail: at === length - 1,
      value: { cooked, raw: cooked.replace(/[\\`]|\$\{/g, '\\$&') },
    }));
  const expressions = parts.filter((_, at) => at % 2 === 1).map((place) => slots[Number(place)] as Expression);
  return { type: 'TemplateLiteral', quasis, expressions } satisfies TemplateLiteral;
}
