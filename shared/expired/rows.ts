import type { Item } from '../aws/dynamodb.ts';
import { isInstant } from '../clock.ts';
import { STAGING_FOLDER } from '../folders.ts';
import { isWithin } from '../namespace.ts';
import type { TtlFault } from './ttl.ts';

/** One line of a report: a record that expired and was not deleted. It holds no secret. */
export interface ExpiredRow<Kind extends string = string> {
  kind: Kind;
  /** The record's key: its attributes in the table, or the object's key in the bucket as `path`. */
  key: Record<string, string>;
  /** Who left it, where the record says: a lease's holder, a commit's id, a waiter's holder. */
  holder: string | null;
  /** ISO 8601; null where the record does not say it in a way that can be read. */
  expiredAt: string | null;
  /** From `expiredAt` to when the row was read; 0 where that is not known. */
  ageSeconds: number;
  /** In words. */
  reason: string;
  /** Whether DynamoDB's TTL can never delete it, whatever time passes. */
  neverDeletable: boolean;
  /** Why not. */
  ttlFault: TtlFault | null;
  /** What the clean-up recognises this very record by; null where it cannot be told from another one. */
  identity: Identity | null;
}

/** Whether the record is of the namespace: by its key, its path or its alias, and by its folder if it is an upload. */
export function isRowWithin(namespace: string | undefined, { kind, key }: Pick<ExpiredRow, 'kind' | 'key'>): boolean {
  const name = key.key ?? key.pk ?? key.path ?? '';
  const isUpload = kind === 'upload' && name.startsWith(STAGING_FOLDER);
  return isWithin(namespace, isUpload ? name.slice(STAGING_FOLDER.length) : name);
}

/** Attributes as they were seen; null for one that was not there. For an object its `etag` and `modifiedAt`. */
export type Identity = Record<string, ScalarValue | null>;
type ScalarValue = { S: string } | { N: string };

/** An attribute longer than this is none that a client of these tables writes into the fields in question. */
const MAX_VALUE = 1024;

/** The named attributes of an item, or null where one of them cannot be compared and reported. */
export function identityOf(item: Item, attributes: readonly string[]): Identity | null {
  const identity: Identity = {};
  for (const name of attributes) {
    const value = item[name];
    if (value === undefined) identity[name] = null;
    else if (value.N !== undefined) identity[name] = { N: value.N };
    else if (value.S !== undefined && value.S.length <= MAX_VALUE) identity[name] = { S: value.S };
    else return null;
  }
  return identity;
}

/** What this service takes for a name; of what other clients left, no more is told, so that rows stay small. */
const MAX_HOLDER = 256;

/** Who left a record, or null where it does not say. */
export function holderNamed(name: string | undefined): string | null {
  if (!name) return null;
  return name.length > MAX_HOLDER ? `${name.slice(0, MAX_HOLDER)}…` : name;
}

/** `expiredAt` and `ageSeconds` of a row. */
export function agedBy(expiredAtMs: number | undefined, now: number): Pick<ExpiredRow, 'expiredAt' | 'ageSeconds'> {
  if (expiredAtMs === undefined || !isInstant(expiredAtMs)) return { expiredAt: null, ageSeconds: 0 };
  const ageSeconds = Math.max(0, Math.floor((now - expiredAtMs) / 1000));
  return { expiredAt: new Date(expiredAtMs).toISOString(), ageSeconds };
}
