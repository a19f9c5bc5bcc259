/**
 * A namespace is the part of a deployment that one team may touch (docs/authorization.md). Its names are stored as the namespace, a slash and the
 * name. The adapters turn names in and out, so that the domain sees stored names alone.
 */
export const prefixOf = (namespace: string): string => `${namespace}/`;

/** Whether a stored name belongs to the namespace. Every name belongs to a caller without one. */
export const isWithin = (namespace: string | undefined, stored: string): boolean =>
  namespace === undefined || stored.startsWith(prefixOf(namespace));

/** The namespace that a stored name belongs to, if any: an administrator's name may begin like one. */
export const namespaceOfName = (stored: string): string | undefined => /^([a-z0-9][a-z0-9-]{0,31})\//.exec(stored)?.[1];

/** A stored name as callers of the namespace write it. A name that is not theirs stays as it is. */
export const nameWithin = (namespace: string | undefined, stored: string): string =>
  namespace !== undefined && isWithin(namespace, stored) ? stored.slice(prefixOf(namespace).length) : stored;

/** A text of an error with another name of the key that it begins with, as each text of LeaseHeld does. */
export const nameKey = (text: string, stored: unknown, key: string): string =>
  text.startsWith(`${stored} `) ? key + text.slice(`${stored}`.length) : text;

/**
 * Where the names of a function are, as dotted paths; `*` stands for each member of a list. Other fields pass unchanged, so
 * every field that holds a name must be listed.
 */
export interface NameFields {
  /** Keys and aliases in requests, which are stored under the namespace. */
  stored?: readonly string[];
  /** Paths of objects in requests, which the caller writes with the namespace. */
  paths?: readonly string[];
  /** Lists by `prefix` and `cursor`, unless the request has the field that names one record. */
  listed?: NameListing;
  /** Of answers in pages: the domain's cursor may name records of others. Given by those alone: others need not load it. */
  cursors?: Cursors;
  /** Names in answers and in errors. */
  answered?: readonly string[];
}

export interface NameListing {
  unless?: string;
  of: 'stored' | 'paths';
}

export interface Cursors {
  open(sealed: string, namespace: string): string;
  seal(cursor: string, namespace: string): string;
}
