import { invalidRequest } from '../errors.ts';
import { isReserved, RESERVED } from '../fields.ts';
import { isWithin, type NameFields, type NameListing, nameKey, nameWithin, prefixOf } from '../namespace.ts';

/** For a function whose request and answer have no names. */
export const NO_NAME_FIELDS: NameFields = {};

/**
 * The request as the domain takes it: names become stored names, and a list shows the namespace alone. Whatever is not
 * a name stays as it is, and the schema refuses it.
 * @throws HoldfastError InvalidRequest for a path or a cursor of elsewhere, and for a name that is the service's own
 */
export function addNamespace(payload: unknown, names: NameFields, namespace: string): unknown {
  const { stored = [], paths = [], listed, cursors } = names;
  let request = payload;
  for (const path of stored) request = mapped(request, path.split('.'), (name) => storedName(name, path, namespace));
  for (const path of paths) request = mapped(request, path.split('.'), (name) => ownPath(name, path, namespace));
  if (!isObject(request)) return request;
  const { cursor } = request;
  const opened =
    cursors && typeof cursor === 'string' ? { ...request, cursor: cursors.open(cursor, namespace) } : request;
  return listed ? confined(opened, listed, namespace) : opened;
}

/** The answer, or the problem, as callers of the namespace read it. */
export function removeNamespace<Answer>(
  answer: Answer,
  { answered = [], cursors }: NameFields,
  namespace: string,
): Answer {
  let shown: unknown = answer;
  for (const path of answered) shown = mapped(shown, path.split('.'), (name) => nameWithin(namespace, name));
  shown = mapped(shown, ['detail'], (text) => nameKey(text, Object(answer).key, Object(shown).key));
  if (cursors) shown = mapped(shown, ['nextCursor'], (cursor) => cursors.seal(cursor, namespace));
  return shown as Answer;
}

/** An alias without a name, as an empty key, must not become one by its prefix. */
const EMPTY_NAMES: Record<string, RegExp> = { alias: /^(:|$)/, 'dependencies.*': /^(:|$)/ };

function storedName(name: string, path: string, namespace: string): string {
  if ((EMPTY_NAMES[path] ?? /^$/).test(name)) return name;
  if (!(path in EMPTY_NAMES) && isReserved(name)) throw invalidRequest([{ path, message: RESERVED }]);
  return prefixOf(namespace) + name;
}

function ownPath(name: string, path: string, namespace: string): string {
  if (isWithin(namespace, name)) return name;
  throw invalidRequest([{ path, message: `must begin with ${prefixOf(namespace)}, the namespace of the call` }]);
}

/** A list shows the namespace alone, unless the request names one record by a text. A value of another type names no record. */
function confined(request: Record<string, unknown>, { of, unless }: NameListing, namespace: string): unknown {
  const { prefix } = request;
  const isList = unless === undefined || typeof request[unless] !== 'string';
  if (prefix === undefined) return isList ? { ...request, prefix: prefixOf(namespace) } : request;
  if (typeof prefix !== 'string' || prefix === '') return request; // the schema refuses it
  const whole = of === 'stored' ? prefixOf(namespace) + prefix : ownPath(prefix, 'prefix', namespace);
  return { ...request, prefix: whole };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A copy in which the texts at the path are changed. */
function mapped(value: unknown, [member, ...rest]: string[], change: (text: string) => string): unknown {
  if (member === undefined) return typeof value === 'string' ? change(value) : value;
  if (member === '*') return Array.isArray(value) ? value.map((one) => mapped(one, rest, change)) : value;
  if (!isObject(value) || !Object.hasOwn(value, member)) return value;
  return { ...value, [member]: mapped(value[member], rest, change) };
}
