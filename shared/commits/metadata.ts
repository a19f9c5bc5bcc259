import { createHash } from 'node:crypto';

/** The prefix of the service's own metadata. Callers cannot use it. */
export const METADATA_PREFIX = 'holdfast-';
const COMMITS_FIELD = `${METADATA_PREFIX}commits`;
const FENCE = `${METADATA_PREFIX}fence`;
const CALL = `${METADATA_PREFIX}call`;
const RESET = `${METADATA_PREFIX}reset`;

/**
 * How many commits the metadata of an object remembers. S3 accepts 2,048 bytes of metadata. Eight ids of 64 bytes with
 * their fingerprints, the longest fence, the reset flag and the caller's 1,024 bytes fill 2,047 of them.
 */
const MAX_COMMITS = 8;
const FINGERPRINT_LENGTH = 11;
const TAG_LENGTH = 6;
/** Says that the chain is not whole. It is shorter than any entry, so it cannot be mistaken for one. */
const EARLIER = '~';

export interface Fence {
  key: string;
  token: number;
}

export interface CommitEntry {
  commitId: string;
  /**
   * 66 bits of a digest of the request. They reveal a commit id that was used for another commit by mistake, but do not
   * stop an attacker.
   */
  fingerprint: string;
}

/** What the service stores in the metadata of an object. */
export interface ServiceMetadata {
  /** The chain: the last commits to the object, the oldest first. The last one wrote this object. */
  commits: CommitEntry[];
  /** Whether the chain has every commit since the object was created. */
  complete: boolean;
  fence: Fence | undefined;
  /** The id of the call that wrote this object, if that call had not read the object before. */
  call?: string | undefined;
  /** Whether the last write only replaced the fence. */
  isReset?: boolean;
}

/** The first `length` characters of a SHA-256 in base64url, six bits each. */
function shortDigest(value: unknown, length: number): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, length);
}

export const fingerprint = (...values: unknown[]) => shortDigest(values, FINGERPRINT_LENGTH);

/**
 * Ties the metadata to its path: if another client copies the object, the copy has the metadata too, but its chain is
 * not true there.
 */
const pathTag = (path: string) => shortDigest(path, TAG_LENGTH);

/** @returns undefined if another client wrote the object */
export function parseServiceMetadata(path: string, metadata: Record<string, string>): ServiceMetadata | undefined {
  const [tag, ...tokens] = metadata[COMMITS_FIELD]?.split(' ') ?? [];
  if (tag !== pathTag(path)) return undefined;
  const complete = tokens[0] !== EARLIER;
  const commits = tokens.slice(complete ? 0 : 1).map((token) => ({
    fingerprint: token.slice(0, FINGERPRINT_LENGTH),
    commitId: token.slice(FINGERPRINT_LENGTH),
  }));
  return { commits, complete, fence: parseFence(metadata[FENCE]), call: metadata[CALL], isReset: RESET in metadata };
}

function parseFence(value: string | undefined): Fence | undefined {
  const [, token, key] = /^(\d{1,16}) ([\w-]+)$/.exec(value ?? '') ?? [];
  if (token === undefined || key === undefined) return undefined;
  return { token: Number(token), key: Buffer.from(key, 'base64url').toString() };
}

interface NewServiceMetadata {
  /** The metadata of the replaced object. Null if the path was empty, undefined if another client wrote the object. */
  before: ServiceMetadata | null | undefined;
  entry: CommitEntry;
  fence?: Fence | undefined;
  call?: string | undefined;
  isReset?: boolean;
}

export function newServiceMetadata(
  path: string,
  { before, entry, fence, call, isReset }: NewServiceMetadata,
): Record<string, string> {
  const commits = [...(before?.commits ?? []), entry];
  const complete = before === null || (before?.complete === true && commits.length <= MAX_COMMITS);
  const tokens = commits.slice(-MAX_COMMITS).map((commit) => commit.fingerprint + commit.commitId);
  return {
    [COMMITS_FIELD]: [pathTag(path), ...(complete ? [] : [EARLIER]), ...tokens].join(' '),
    ...(fence && { [FENCE]: `${fence.token} ${Buffer.from(fence.key).toString('base64url')}` }),
    ...(call !== undefined && { [CALL]: call }),
    ...(isReset && { [RESET]: '1' }),
  };
}

export function userMetadata(metadata: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !name.startsWith(METADATA_PREFIX)));
}
