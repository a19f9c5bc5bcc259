import type { JsonSchema } from '../openapi/json-schema.ts';
import { type Components, notNull, referredName } from '../reference/schema.ts';
import { docstring, fieldDocstring, listed, pascal, quoted } from './layout.ts';

/** An enumeration with more values gets a name. */
const MAX_INLINE = 3;

const SIMPLE: Record<string, string> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
};

/** Python keywords cannot be fields in a class body. */
const KEYWORDS = ['from'];

/** Keywords that do not change the shape. Objects of the same shape share a name. */
const SHAPELESS = ['description', 'minLength', 'maxLength', 'minimum', 'maximum', 'pattern', 'format', 'default'];

/** Writes the types of the contract in Python. It declares only the types that `of` and `component` were asked for, with the types inside these. */
export class PythonTypes {
  readonly #components: Components;
  readonly #literals = new Map<string, string>();
  readonly #classes = new Map<string, string>();
  readonly #unions = new Map<string, string>();
  readonly #names = new Map<string, string>();

  constructor(components: Components) {
    this.#components = components;
    for (const [name, schema] of Object.entries(components))
      if (schema.properties) this.#names.set(shapeOf(schema), this.#names.get(shapeOf(schema)) ?? name);
  }

  /** The declarations, in an order in which each name is declared before its use. */
  get declarations(): string {
    return [...sorted(this.#literals), '\n', ...sorted(this.#classes), '\n', ...sorted(this.#unions)].join('');
  }

  /** @param name the name for an object or an enumeration that has none */
  of(schema: JsonSchema, name: string): string {
    const choices = notNull(schema);
    const types = [schema.type ?? []].flat() as string[];
    const isNullable = types.includes('null') || choices.length < ((schema.anyOf ?? schema.oneOf ?? []) as []).length;
    const { type, description, ...rest } = schema;
    const [bare] = types.filter((one) => one !== 'null');
    const inner =
      schema.anyOf || schema.oneOf
        ? this.#union(
            choices.map((choice) => ({ description, ...choice })),
            name,
          )
        : this.#single(bare === undefined ? { description, ...rest } : { description, ...rest, type: bare }, name);
    return isNullable && inner !== 'Any' ? `${inner} | None` : inner;
  }

  #union(choices: JsonSchema[], name: string): string {
    const types = choices.map((choice, at) => this.of(choice, at > 0 ? `${name}${at + 1}` : name));
    return [...new Set(types)].join(' | ');
  }

  component(name: string): string {
    const schema = this.#components[name];
    if (!schema) throw new Error(`the contract has no ${name}`);
    if (schema.properties) return this.#object(schema, name);
    if (!schema.oneOf) return this.of(schema, name);
    if (!this.#unions.has(name)) {
      this.#unions.set(name, '');
      this.#unions.set(name, `${name}: TypeAlias = ${this.of(schema, name)}\n${about(schema)}`);
    }
    return name;
  }

  #single(schema: JsonSchema, name: string): string {
    const referred = referredName(schema);
    if (referred !== undefined) return this.component(referred);
    if ('const' in schema) return `Literal[${quoted(schema.const)}]`;
    if (Array.isArray(schema.enum))
      return this.#literal(
        schema.enum.filter((value) => value !== null),
        name,
      );
    const { description } = schema;
    if (schema.type === 'array')
      return `list[${this.of({ description, ...(schema.items as JsonSchema) }, name.replace(/s$/, ''))}]`;
    if (schema.type === 'object') {
      if (schema.properties) return this.#object(schema, name);
      const { additionalProperties: values } = schema;
      return `dict[str, ${typeof values === 'object' ? this.of({ description, ...(values as JsonSchema) }, `${name}Value`) : 'Any'}]`;
    }
    return SIMPLE[String(schema.type)] ?? 'Any';
  }

  #literal(values: unknown[], name: string): string {
    const texts = values.map(quoted);
    if (values.length <= MAX_INLINE) return `Literal[${texts.join(', ')}]`;
    const shape = texts.join();
    const current = this.#names.get(shape);
    if (current !== undefined) return current;
    this.#names.set(shape, name);
    this.#literals.set(name, listed(`${name}: TypeAlias = Literal[`, texts, ']\n'));
    return name;
  }

  #object(schema: JsonSchema, wanted: string): string {
    const shape = shapeOf(schema);
    const name = this.#components[wanted]?.properties ? wanted : (this.#names.get(shape) ?? wanted);
    if (this.#classes.has(name)) return name;
    this.#names.set(shape, this.#names.get(shape) ?? name);
    this.#classes.set(name, '');
    this.#classes.set(name, this.#classOf(this.#components[name] ?? schema, name));
    return name;
  }

  #classOf(schema: JsonSchema, name: string): string {
    const { properties = {}, required = [], description } = schema;
    const fields = Object.entries(properties as Record<string, JsonSchema>).map(([field, of]) => {
      const type = this.of(of, `${name}${pascal(field)}`);
      const text = of.description === description ? '' : fieldDocstring(String(of.description ?? ''), '    ');
      return {
        field,
        type,
        text: `    ${field}: ${type}\n${text}`,
        isRequired: (required as string[]).includes(field),
      };
    });
    if (fields.some(({ field }) => KEYWORDS.includes(field))) {
      const items = fields.map(({ field, type }) => `${quoted(field)}: ${type}`).join(', ');
      return `\n${name} = TypedDict("${name}", {${items}})\n${about(schema)}\n`;
    }
    const [always, sometimes] = [true, false].map((isRequired) =>
      fields.filter((field) => field.isRequired === isRequired).map(({ text }) => text),
    ) as [string[], string[]];
    const doc = docstring(String(description), '    ');
    if (sometimes.length === 0) return `\nclass ${name}(TypedDict):\n${doc}\n${always.join('')}\n`;
    if (always.length === 0) return `\nclass ${name}(TypedDict, total=False):\n${doc}\n${sometimes.join('')}\n`;
    return `\nclass _${name}(TypedDict):\n${always.join('')}\n\nclass ${name}(_${name}, total=False):\n${doc}\n${sometimes.join('')}\n`;
  }
}

const about = ({ description }: JsonSchema) => docstring(String(description), '');

const sorted = (declared: Map<string, string>): string[] =>
  [...declared].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, text]) => text);

/** Equal for two objects that differ only in descriptions and bounds. */
function shapeOf(schema: JsonSchema): string {
  return JSON.stringify(schema, (keyword, member) => {
    if (keyword === 'properties') return Object.entries(member).sort();
    if (SHAPELESS.includes(keyword) && typeof member !== 'object') return undefined;
    return member === false ? undefined : member;
  });
}
