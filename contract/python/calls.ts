import type { JsonSchema } from '../openapi/json-schema.ts';
import { type Components, notNull, referredName } from '../reference/schema.ts';
import { docstring, listed, pascal, quoted, snake } from './layout.ts';
import type { PythonTypes } from './types.ts';

/** An operation of the document. */
export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  parameters?: (JsonSchema & { name: string; required?: boolean; schema: JsonSchema })[];
  requestBody?: { content: { 'application/json': { schema: JsonSchema } } };
  responses: Record<string, { content?: { 'application/json'?: { schema: JsonSchema } } }>;
}

/** An argument of a method. */
interface Argument {
  field: string;
  type: string;
  isRequired: boolean;
  /** Whether null means something else than leaving the field out. */
  hasNull: boolean;
}

/** The client that blocks, or the one for asyncio. */
interface Kind {
  def: 'def' | 'async def';
  wait: '' | 'await ';
  iterator: 'Iterator' | 'AsyncIterator';
  paged: 'paged' | 'apaged';
}

const KINDS = {
  Calls: { def: 'def', wait: '', iterator: 'Iterator', paged: 'paged' },
  AsyncCalls: { def: 'async def', wait: 'await ', iterator: 'AsyncIterator', paged: 'apaged' },
} satisfies Record<string, Kind>;

/** The client has its own method for these calls. */
const OWN = ['acquire'];

/** Operations with a shorter name in the client. The client for TypeScript has the same names (clients/typescript/src/calls.ts). */
const RENAMED: Record<string, string> = { capKey: 'cap', onceForget: 'forget' };

/** Methods that read page after page. They do not take the arguments that are for one record. */
const LISTS: Record<string, { method: string; about: string; without: string[] }> = {
  readLeases: { method: 'leases', about: 'Lists the keys that match, page by page.', without: ['key', 'waiters'] },
  readInFlight: {
    method: 'commits_in_flight',
    about: 'Lists the commits that are under way, page by page.',
    without: [],
  },
  readNames: {
    method: 'names',
    about: 'Lists the records of the nameservice that match, page by page.',
    without: ['alias'],
  },
  readExpired: { method: 'expired', about: 'Lists the rows of a report that match, page by page.', without: [] },
};

const TIMEOUT = 'timeout: float = 30.0';

/** Writes the two mixins that have a method for each operation. */
export class PythonCalls {
  readonly #types: PythonTypes;
  readonly #components: Components;

  constructor(types: PythonTypes, components: Components) {
    this.#types = types;
    this.#components = components;
  }

  /** The text of both classes. */
  classes(operations: Operation[]): string {
    // An object takes its name where it is met first, and answers give better names than requests.
    for (const operation of operations) this.#answersOf(operation);
    return Object.entries(KINDS)
      .map(([name, kind]) => {
        const methods = operations
          .filter(({ operationId }) => !OWN.includes(operationId))
          .flatMap((operation) => [this.#method(operation, kind), this.#list(operation, kind)]);
        return `\n${head(name, kind)}${methods.join('')}`;
      })
      .join('\n');
  }

  #method(operation: Operation, kind: Kind): string {
    const { operationId, summary, description } = operation;
    const name = RENAMED[operationId] ?? snake(operationId);
    const answers = this.#answersOf(operation);
    const [text = ''] = description.split('\n\n');
    const doc = docstring(`${summary}. ${text}`, '        ');
    const selected = this.#selected(operation, answers) ?? this.#choices(operation);
    const overloads = (selected ?? []).map(
      ([given, answer = answers.join(' | ')]) =>
        `\n    @overload\n${signature(`    ${kind.def} ${name}(`, given.map(declared), answer)}: ...\n`,
    );
    const all = selected ? merged(selected.map(([given]) => given)) : this.#argumentsOf(operation);
    const answer = answers.join(' | ');
    const ask = `${kind.wait}self.call("${operationId}", request, timeout=timeout)`;
    const body = `${request(all)}        return cast("${answer}", ${ask})\n`;
    return `${overloads.join('')}\n${signature(`    ${kind.def} ${name}(`, all.map(declared), answer)}:\n${doc}${body}`;
  }

  #list(operation: Operation, kind: Kind): string {
    const list = LISTS[operation.operationId];
    if (!list) return '';
    const filter = this.#argumentsOf(operation).filter(({ field }) => ![...list.without, 'cursor'].includes(field));
    const [rows, row] = this.#rowsOf(operation);
    const head = signature(`    def ${list.method}(`, filter.map(declared), `${kind.iterator}[${row}]`);
    const ask = `lambda page: self.call("${operation.operationId}", page, timeout=timeout)`;
    return `\n${head}:\n${docstring(list.about, '        ')}${request(filter)}${listed(`        return ${kind.paged}(`, [ask, 'request', quoted(rows)], ')\n')}`;
  }

  /** The overloads of a call that reads either one record or a page of them. */
  #selected(operation: Operation, answers: string[]): [Argument[], string?][] | undefined {
    const [one, page] = answers;
    const [selector, ...others] = this.#argumentsOf(operation);
    if (!operation.parameters || one === undefined || page === undefined || !selector) return undefined;
    const more = others.filter(({ field }) => field !== 'cursor');
    return [
      [[{ ...selector, isRequired: true }, ...more], one],
      [others.filter(({ field }) => field !== 'waiters'), page],
    ];
  }

  /** The overloads of a call whose request is a union, such as the operations of `publish`. */
  #choices({ requestBody }: Operation): [Argument[], string?][] | undefined {
    const schema = requestBody?.content['application/json'].schema;
    const name = schema && referredName(schema);
    const choices = name && (this.#components[name]?.oneOf as JsonSchema[] | undefined);
    return choices ? choices.map((choice) => [this.#fieldsOf(referredName(choice) ?? '')]) : undefined;
  }

  #argumentsOf({ parameters, requestBody }: Operation): Argument[] {
    if (parameters)
      return parameters.map(({ name, required = false, schema }) => this.#argument(name, schema, { required }));
    const name = requestBody && referredName(requestBody.content['application/json'].schema);
    return name ? this.#fieldsOf(name) : [];
  }

  #fieldsOf(component: string): Argument[] {
    const { properties = {}, required = [] } = this.#components[component] ?? {};
    return Object.entries(properties as Record<string, JsonSchema>).map(([field, schema]) =>
      this.#argument(field, schema, { required: (required as string[]).includes(field), owner: component }),
    );
  }

  #argument(field: string, schema: JsonSchema, { required = false, owner = '' }): Argument {
    const type = this.#types.of(schema, `${owner.replace(/Request$/, '')}${pascal(field)}`);
    return { field, type, isRequired: required, hasNull: type.endsWith('| None') || (type === 'Any' && required) };
  }

  #answersOf({ responses }: Operation): string[] {
    const schemas = ['200', '201'].flatMap((status) => {
      const schema = responses[status]?.content?.['application/json']?.schema;
      return schema ? notNull(schema) : [];
    });
    return [...new Set(schemas.map((schema) => this.#types.of(schema, '')))];
  }

  /** The field of a page that lists its rows, and the type of a row. */
  #rowsOf({ responses }: Operation): [field: string, type: string] {
    const schemas = notNull(responses['200']?.content?.['application/json']?.schema ?? {});
    const page = schemas.map((schema) => this.#components[referredName(schema) ?? '']).find(isPage);
    const rows = Object.entries((page?.properties ?? {}) as Record<string, JsonSchema>);
    const found = rows.findLast(([, { type }]) => type === 'array');
    if (!found) throw new Error('a list without rows');
    return [found[0], this.#types.of(found[1].items as JsonSchema, '')];
  }
}

const isPage = (schema: JsonSchema | undefined) => 'nextCursor' in ((schema?.properties ?? {}) as object);

const head = (name: string, kind: Kind) => `
class ${name}(ABC):
    """The calls of the API${kind.wait && ', for asyncio'}. The client adds leases with heartbeats, and work under them."""

    @abstractmethod
    ${kind.def} call(self, operation: str, request: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        """Sends a call of the API, and repeats it for \`timeout\` seconds after transient failures."""
`;

const signature = (head: string, items: string[], answer: string) =>
  listed(head, ['self', '*', ...items, TIMEOUT], `) -> ${answer}`);

function declared({ field, type, isRequired, hasNull }: Argument): string {
  if (isRequired) return `${snake(field)}: ${type}`;
  if (type === 'Any') return `${snake(field)}: Any = ${hasNull ? 'OMITTED' : 'None'}`;
  return `${snake(field)}: ${hasNull ? `${type.replace(/ \| None$/, '')} | Omitted | None = OMITTED` : `${type} | None = None`}`;
}

/** The arguments of a method with overloads. An argument is required only if every overload requires it. */
function merged(overloads: Argument[][]): Argument[] {
  const all = Map.groupBy(overloads.flat(), ({ field }) => field);
  return [...all].map(([field, same]) => {
    const types = [...new Set(same.map(({ type }) => type))];
    const isLiteral = types.every((type) => type.startsWith('Literal['));
    const type = types.length === 1 ? (types[0] ?? '') : isLiteral ? 'str' : 'Any';
    const isRequired = same.length === overloads.length && same.every((one) => one.isRequired);
    return { field, type, isRequired, hasNull: same.some(({ hasNull }) => hasNull) };
  });
}

/** The Python lines that build the request. */
function request(all: Argument[]): string {
  const [withNull, others] = [true, false].map((hasNull) =>
    all.filter((one) => one.hasNull === hasNull).map(({ field }) => `${field}=${snake(field)}`),
  ) as [string[], string[]];
  const first = listed('        request = given(', others, ')\n');
  return withNull.length > 0 ? `${first}${listed('        request |= sent(', withNull, ')\n')}` : first;
}
