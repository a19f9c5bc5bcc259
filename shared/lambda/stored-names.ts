import { invalidRequest } from '../errors.ts';
import { isReserved, RESERVED_RULE } from '../fields.ts';
import { isWithin, type NameFields, type NameListing, nameWithin, prefixOf, withCallersKey } from '../namespace.ts';

/** For a function whose requests and answers do not contain names. */
export const NO_NAME_FIELDS: NameFields = {};

/**
 * Turns a caller's request into one of the domain: adds the namespace to names, and limits a list to the namespace. A
 * field of the wrong type stays as it is, because the schema refuses it later.
 * @throws HoldfastError InvalidRequest for a path or a cursor of another namespace, and for a name that is reserved for
 *   the service
 */
export function addNamespace(payload: unknown, names: NameFields, namespace: string): unknown {
  const { stored = [], paths = [], listed, cursors } = names;
  let request = payload;
  for (const path of stored) request = mapTexts(request, path.split('.'), (name) => storedName(name, path, namespace));
  for (const path of paths) request = mapTexts(request, path.split('.'), (name) => pathWithin(name, path, namespace));
  if (!isObject(request)) return request;
  const { cursor } = request;
  const opened =
    cursors && typeof cursor === 'string' ? { ...request, cursor: cursors.open(cursor, namespace) } : request;
  return listed ? limitedToNamespace(opened, listed, namespace) : opened;
}

/**
 * Turns an answer or an error of the domain into one for the caller: removes the namespace from names, and encrypts the
 * cursor.
 */
export function removeNamespace<Answer>(
  answer: Answer,
  { answered = [], cursors }: NameFields,
  namespace: string,
): Answer {
  let shown: unknown = answer;
  for (const path of answered) shown = mapTexts(shown, path.split('.'), (name) => nameWithin(namespace, name));
  shown = mapTexts(shown, ['detail'], (text) => withCallersKey(text, Object(answer).key, Object(shown).key));
  if (cursors) shown = mapTexts(shown, ['nextCursor'], (cursor) => cursors.seal(cursor, namespace));
  return shown as Answer;
}

/**
 * Aliases without a name. Like an empty key, such an alias does not get the prefix, because the schema must still find
 * it empty.
 */
const EMPTY_ALIASES: Record<string, RegExp> = { alias: /^(:|$)/, 'dependencies.*': /^(:|$)/ };

function storedName(name: string, path: string, namespace: string): string {
  if ((EMPTY_ALIASES[path] ?? /^$/).test(name)) return name;
  if (!(path in EMPTY_ALIASES) && isReserved(name)) throw invalidRequest([{ path, message: RESERVED_RULE }]);
  return prefixOf(namespace) + name;
}

function pathWithin(name: string, path: string, namespace: string): string {
  if (isWithin(namespace, name)) return name;
  throw invalidRequest([{ path, message: `must begin with ${prefixOf(namespace)}, the namespace of the call` }]);
}

/**
 * Limits a list to the namespace with its `prefix`. A request that names one record is not a list. If its name is not
 * text, the request counts as a list, and the schema refuses it later.
 */
function limitedToNamespace(request: Record<string, unknown>, { of, unless }: NameListing, namespace: string): unknown {
  const { prefix } = request;
  const isList = unless === undefined || typeof request[unless] !== 'string';
  if (prefix === undefined) return isList ? { ...request, prefix: prefixOf(namespace) } : request;
  if (typeof prefix !== 'string' || prefix === '') return request; // the schema refuses it
  const whole = of === 'stored' ? prefixOf(namespace) + prefix : pathWithin(prefix, 'prefix', namespace);
  return { ...request, prefix: whole };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function mapTexts(value: unknown, [member, ...rest]: string[], change: (text: string) => string): unknown {
  if (member === undefined) return typeof value === 'string' ? change(value) : value;
  if (member === '*') return Array.isArray(value) ? value.map((one) => mapTexts(one, rest, change)) : value;
  if (!isObject(value) || !Object.hasOwn(value, member)) return value;
  return { ...value, [member]: mapTexts(value[member], rest, change) };
}
