import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ProvidedContext } from 'vitest';
import document from '../../contract/openapi.json' with { type: 'json' };
import type { LambdaHandler } from '../../local/lambda.ts';

/** JSON Schema, as far as the contract uses it. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

interface Loaded {
  name: string;
  /** The folder of functions/ that has it. */
  capability: string;
  method: 'GET' | 'POST';
  /** The schemas of its requests. Empty if the function does not have a route. */
  schemas: Schema[];
  /** Makes the handler, which without dependencies takes those of its environment. */
  make(...dependencies: unknown[]): LambdaHandler;
}

/** The functions of the service, as Vitest provides them: a process of a test has to be given them. */
export type Functions = ProvidedContext['service']['functions'];

export async function loadFunctions(functions: Functions): Promise<Loaded[]> {
  return Promise.all(
    functions.map(async ({ name, source }) => {
      const { [name]: make } = await import(pathToFileURL(resolve(source)).href);
      return { name, capability: source.split('/')[1] ?? '', make, ...takes(name) };
    }),
  );
}

export const resolved = ({ $ref, ...schema }: Schema): Schema =>
  $ref ? ((document.components.schemas as Record<string, Schema>)[$ref.split('/').at(-1) ?? ''] ?? {}) : schema;

interface Operation {
  operationId: string;
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: { 'application/json': { schema: Schema } } };
}

function takes(name: string): Pick<Loaded, 'method' | 'schemas'> {
  for (const { get, post } of Object.values(
    document.paths as unknown as Record<string, { get?: Operation; post?: Operation }>,
  )) {
    if (post?.operationId === name) {
      const body = resolved(post.requestBody?.content['application/json'].schema ?? {});
      return { method: 'POST', schemas: (body.oneOf ?? [body]).map(resolved) };
    }
    const query = (get?.parameters ?? []).filter((one) => one.in === 'query');
    if (get?.operationId === name)
      return {
        method: 'GET',
        schemas: [{ properties: Object.fromEntries(query.map((one) => [one.name, one.schema])) }],
      };
  }
  return { method: 'POST', schemas: [] };
}

/** Texts of JSON, of about as many bytes as that. */
export const SHAPES: Record<string, (bytes: number) => string> = {
  'names, all different': (bytes) => `{${many(bytes / 14, (at) => `"N-${at}":"x"`)}}`,
  'names of numbers': (bytes) => `{${many(bytes / 11, (at) => `"${at}":0`)}}`,
  'texts, none right': (bytes) => `[${many(bytes / 6, '"xxx"')}]`,
  numbers: (bytes) => `[${many(bytes / 2, '0')}]`,
  'empty objects': (bytes) => `[${many(bytes / 3, '{}')}]`,
  'empty lists': (bytes) => `[${many(bytes / 3, '[]')}]`,
  'lists, nested': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'objects, nested': (bytes) => `${'{"a":'.repeat(bytes / 6)}0${'}'.repeat(bytes / 6)}`,
  'a text of letters': (bytes) => `"${'a'.repeat(bytes)}"`,
  'a text of slashes': (bytes) => `"${'/'.repeat(bytes)}"`,
  'a text of quotes': (bytes) => `"${'\\"'.repeat(bytes / 2)}"`,
  'a text of control characters': (bytes) => `"${'\\u0001'.repeat(bytes / 6)}"`,
  'a text of lone surrogates': (bytes) => `"${'\\ud800'.repeat(bytes / 6)}"`,
  'a text of JSON': (bytes) => JSON.stringify(`[${many(bytes / 3, '{}')}]`),
  'a number of many digits': (bytes) => '9'.repeat(bytes),
  'a number of many zeros': (bytes) => `1${'0'.repeat(bytes)}1`,
};
const many = (count: number, item: ((at: number) => string) | string) =>
  typeof item === 'string'
    ? `${`${item},`.repeat(count - 1)}${item}`
    : Array.from({ length: Math.floor(count) }, (_, at) => item(at)).join(',');
