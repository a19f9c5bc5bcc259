import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Item } from '../../aws/dynamodb.ts';
import { STAGING_FOLDER } from '../../folders.ts';
import { isWithin } from '../../namespace.ts';
import { isInstant } from '../../surroundings/clock.ts';
import type { TtlFault } from './ttl.ts';

/** A row of a report: a record that has expired and was not deleted. A row never contains a secret. */
export interface ExpiredRow<Kind extends string = string> {
  kind: Kind;
  /**
   * The key of the record: its key attributes in the table, `path` for an object, or `key` and `fence` for a permit.
   */
  key: Record<string, string>;
  /** Who left the record: the holder of a lease or a waiter, or the id of a commit. Null if the record does not say. */
  holder: string | null;
  /** The time of expiry, in ISO 8601. Null if the record does not have a readable time. */
  expiredAt: string | null;
  /** How long after `expiredAt` the record was read. 0 if `expiredAt` is null. */
  ageSeconds: number;
  /** Why the record is in the report, in words. */
  reason: string;
  /** Whether DynamoDB's TTL can never delete the record. */
  neverDeletable: boolean;
  /** Why the TTL never deletes the record. */
  ttlFault: TtlFault | null;
  /** The attributes by which the clean-up recognises the record. Null if it cannot be told from another one. */
  identity: Identity | null;
}

/** Whether the record belongs to the namespace, as its key, path or alias shows. For an upload, the folder decides. */
export function isRowWithin(namespace: string | undefined, { kind, key }: Pick<ExpiredRow, 'kind' | 'key'>): boolean {
  const name = key.key ?? key.pk ?? key.path ?? '';
  const isUpload = kind === 'upload' && name.startsWith(STAGING_FOLDER);
  return isWithin(namespace, isUpload ? name.slice(STAGING_FOLDER.length) : name);
}

/**
 * The values of attributes when the record was read. Null for an absent attribute. An object has `etag` and
 * `modifiedAt`.
 */
export type Identity = Record<string, ScalarValue | null>;
type ScalarValue = { S: string } | { N: string };

/** The longest text in an identity. Clients of these tables do not write longer ones into these attributes. */
const MAX_VALUE = 1024;

/** The value of an attribute, or of a member of a map if the name has a dot. */
const valueAt = (item: Item, path: string): AttributeValue | undefined => {
  const [name = '', part] = path.split('.');
  return part === undefined ? item[name] : item[name]?.M?.[part];
};

/** The named attributes of an item. @returns null if one of them cannot be compared or is too long */
export function identityOf(item: Item, attributes: readonly string[]): Identity | null {
  const identity: Identity = {};
  for (const name of attributes) {
    const value = valueAt(item, name);
    if (value === undefined) identity[name] = null;
    else if (value.N !== undefined) identity[name] = { N: value.N };
    else if (value.S !== undefined && value.S.length <= MAX_VALUE) identity[name] = { S: value.S };
    else return null;
  }
  return identity;
}

export const hasNumbers = (identity: Identity | null, numbers: Readonly<Record<string, number | undefined>>): boolean =>
  Object.entries(numbers).every(([name, value]) => {
    const reported = identity?.[name];
    return reported != null && 'N' in reported && Number(reported.N) === value;
  });

/** The longest name that this service accepts. A longer name of another client is cut, so that rows stay small. */
const MAX_HOLDER = 256;

export function holderNamed(name: string | undefined): string | null {
  if (!name) return null;
  return name.length > MAX_HOLDER ? `${name.slice(0, MAX_HOLDER)}…` : name;
}

export function agedBy(expiredAtMs: number | undefined, now: number): Pick<ExpiredRow, 'expiredAt' | 'ageSeconds'> {
  if (expiredAtMs === undefined || !isInstant(expiredAtMs)) return { expiredAt: null, ageSeconds: 0 };
  const ageSeconds = Math.max(0, Math.floor((now - expiredAtMs) / 1000));
  return { expiredAt: new Date(expiredAtMs).toISOString(), ageSeconds };
}

/** The reason of a row for an expired grant. @param inGrace whether the execution of the holder had ended */
export const expiredBy = (who: string, inGrace: boolean): string =>
  inGrace
    ? `the execution of ${who} ended without a release, and its grace is over`
    : `${who} let it expire without a release`;
