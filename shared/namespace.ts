/**
 * The beginning of every stored name of a namespace, the part of a deployment that one team may use
 * (docs/authorization.md). The adapters add the prefix to requests and remove it from answers, so the domain sees only
 * stored names.
 */
export const prefixOf = (namespace: string): string => `${namespace}/`;

/** Whether a stored name belongs to the namespace. A caller without a namespace may use every name. */
export const isWithin = (namespace: string | undefined, stored: string): boolean =>
  namespace === undefined || stored.startsWith(prefixOf(namespace));

/**
 * The namespace with which a stored name begins. An administrator may have stored a name that begins in the same way by
 * chance.
 */
export const namespaceOfName = (stored: string): string | undefined => /^([a-z0-9][a-z0-9-]{0,31})\//.exec(stored)?.[1];

/** A stored name as callers of the namespace write it. A name of another namespace stays as it is. */
export const nameWithin = (namespace: string | undefined, stored: string): string =>
  namespace !== undefined && isWithin(namespace, stored) ? stored.slice(prefixOf(namespace).length) : stored;

/**
 * Replaces the stored key at the beginning of an error's text with the caller's key. Each text of LeaseHeld begins with
 * the key.
 */
export const withCallersKey = (text: string, stored: unknown, key: string): string =>
  text.startsWith(`${stored} `) ? key + text.slice(`${stored}`.length) : text;

/**
 * The fields of a function's requests and answers that hold names, as dotted paths; `*` stands for each member of a
 * list. List every such field here: the adapters leave all other fields as they are, so a name in one would reach
 * another team's record.
 */
export interface NameFields {
  /** Keys and aliases in requests. The adapter adds the namespace to them. */
  stored?: readonly string[];
  /** Paths of objects in requests. The caller writes them with the namespace. */
  paths?: readonly string[];
  /** Set if the function lists records by `prefix`. */
  listed?: NameListing;
  /**
   * Encrypts the cursors of a list, which may name records of other namespaces. Only functions that list records load
   * the code.
   */
  cursors?: Cursors;
  /** Names in answers and errors. The adapter removes the namespace from them. */
  answered?: readonly string[];
}

export interface NameListing {
  /** The field that names one record. A request with this field reads that record and does not list. */
  unless?: string;
  /** Whether `prefix` is the beginning of a stored name or of an object's path. */
  of: 'stored' | 'paths';
}

export interface Cursors {
  open(sealed: string, namespace: string): string;
  seal(cursor: string, namespace: string): string;
}
