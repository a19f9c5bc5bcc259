import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Item } from '../../aws/dynamodb.ts';
import { STAGING_FOLDER } from '../../folders.ts';
import { isWithin } from '../../namespace.ts';
import { isInstant } from '../../surroundings/clock.ts';
import type { TtlFault } from './ttl.ts';

/** One line of a report: a record that has expired and was not deleted. It contains no secret. */
export interface ExpiredRow<Kind extends string = string> {
  kind: Kind;
  /** The record's key: its attributes in the table, the object's key in the bucket as `path`, or `key` and `fence` of a permit. */
  key: Record<string, string>;
  /** The one who left the record, if it says so: the holder of a lease, the id of a commit, the holder of a waiter. */
  holder: string | null;
  /** ISO 8601. Null if the record holds no readable time. */
  expiredAt: string | null;
  /** From `expiredAt` to the time when the row was read. 0 if `expiredAt` is null. */
  ageSeconds: number;
  /** Why the record is in the report, in words. */
  reason: string;
  /** Whether DynamoDB's TTL will never delete it. */
  neverDeletable: boolean;
  /** Why the TTL never deletes it. */
  ttlFault: TtlFault | null;
  /** The attributes by which the clean-up recognises the record. Null if it cannot be told from another one. */
  identity: Identity | null;
}

/** Whether the record is of the namespace: by its key, its path or its alias, and by its folder if it is an upload. */
export function isRowWithin(namespace: string | undefined, { kind, key }: Pick<ExpiredRow, 'kind' | 'key'>): boolean {
  const name = key.key ?? key.pk ?? key.path ?? '';
  const isUpload = kind === 'upload' && name.startsWith(STAGING_FOLDER);
  return isWithin(namespace, isUpload ? name.slice(STAGING_FOLDER.length) : name);
}

/** The attributes at the time of the report, and null for an absent one. For an object: `etag` and `modifiedAt`. */
export type Identity = Record<string, ScalarValue | null>;
type ScalarValue = { S: string } | { N: string };

/** No client of these tables writes longer values into these attributes. */
const MAX_VALUE = 1024;

/** An attribute, or with a dot the part of a map. */
const valueAt = (item: Item, path: string): AttributeValue | undefined => {
  const [name = '', part] = path.split('.');
  return part === undefined ? item[name] : item[name]?.M?.[part];
};

/** The named attributes of an item, or parts of them, or null if one of them cannot be compared or reported. */
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

/** Whether the identity has these numbers. */
export const hasNumbers = (identity: Identity | null, numbers: Readonly<Record<string, number | undefined>>): boolean =>
  Object.entries(numbers).every(([name, value]) => {
    const reported = identity?.[name];
    return reported != null && 'N' in reported && Number(reported.N) === value;
  });

/** The longest name that this service accepts. Longer names, of other clients, are cut so that rows stay small. */
const MAX_HOLDER = 256;

/** The one who left a record. Null if the record does not say so. */
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

/** The words for a grant that its holder let expire. @param inGrace whether the execution of the holder had ended */
export const expiredBy = (who: string, inGrace: boolean): string =>
  inGrace
    ? `the execution of ${who} ended without a release, and its grace is over`
    : `${who} let it expire without a release`;
