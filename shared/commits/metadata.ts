import { createHash } from 'node:crypto';

/** User metadata with this prefix belongs to the service. */
export const METADATA_PREFIX = 'holdfast-';
const COMMITS_FIELD = `${METADATA_PREFIX}commits`;
const FENCE = `${METADATA_PREFIX}fence`;
const CALL = `${METADATA_PREFIX}call`;
const RESET = `${METADATA_PREFIX}reset`;

/**
 * How many commits an object remembers. S3 takes 2,048 bytes of user metadata: eight ids of 64 bytes with their
 * fingerprints, the longest fence, the mark of its reset and the caller's own 1,024 bytes fill 2,047 of them.
 */
const MAX_COMMITS = 8;
const FINGERPRINT_LENGTH = 11;
const TAG_LENGTH = 6;
/** Shorter than any entry, so it cannot be one. */
const EARLIER = '~';

export interface Fence {
  key: string;
  token: number;
}

/** One commit: its id, and a digest of the request under that id. */
export interface CommitEntry {
  commitId: string;
  /** 66 bits of a digest, see `digest`: enough against mistakes, and no defence against intent. */
  fingerprint: string;
}

/** The history of an object that the service has written into its metadata. */
export interface ServiceMetadata {
  /** The last commits of the chain, oldest first. The last one wrote this object. */
  commits: CommitEntry[];
  /** False if more commits, or a foreign writer's object, came before. */
  complete: boolean;
  fence: Fence | undefined;
  /** The call that wrote this object, if that call had not looked before. */
  call?: string | undefined;
  /** Whether the last write only replaced the fence. */
  isReset?: boolean;
}

/** The first `length` characters of a SHA-256 in base64url, six bits each. */
function shortDigest(value: unknown, length: number): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, length);
}

export const fingerprint = (...asked: unknown[]) => shortDigest(asked, FINGERPRINT_LENGTH);

/** A foreign copy takes the metadata along to another path, where the chain is not true. */
const pathTag = (path: string) => shortDigest(path, TAG_LENGTH);

/** Undefined if another client wrote the object. */
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
  /** Null if nothing was there, undefined if a foreign writer's object was. */
  before: ServiceMetadata | null | undefined;
  entry: CommitEntry;
  fence?: Fence | undefined;
  call?: string | undefined;
  isReset?: boolean;
}

/** The metadata of the commit that replaces an object. */
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

/** The metadata that callers put on the object. */
export function userMetadata(metadata: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !name.startsWith(METADATA_PREFIX)));
}
