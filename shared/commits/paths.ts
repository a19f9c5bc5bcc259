import { OWN_FOLDER, STAGING_FOLDER } from '../folders.ts';
import { prefixOf } from '../namespace.ts';

/**
 * The key of a staged upload. Each namespace has a folder of its own, so that a commit of another namespace does not
 * find the upload.
 */
export const stagingKey = (uploadId: string, namespace?: string) =>
  `${STAGING_FOLDER}${namespace === undefined ? '' : prefixOf(namespace)}${uploadId}`;

/** The source of a copy as its header names it: the key is encoded, but its slashes are not. */
export const copySource = (bucket: string, key: string) =>
  `${bucket}/${key.split('/').map(encodeURIComponent).join('/')}`;

/**
 * A path is the key of the object in S3 and of the commit record, byte for byte. HTTP clients rewrite empty and dotted
 * segments, so that two paths would become one.
 * @returns what is wrong with the path, or undefined
 */
export function pathFault(path: string): string | undefined {
  if (path === '') return undefined; // the schema refuses an empty name
  const segments = path.split('/');
  if (path.startsWith('/')) return 'must not begin with a slash';
  if (segments.some((segment) => segment === '')) return 'must not have an empty segment';
  if (segments.some((segment) => segment === '.' || segment === '..')) return "must not have a segment '.' or '..'";
  if (segments[0] === OWN_FOLDER) return `must not be under ${OWN_FOLDER}/, which is the service's own`;
  return undefined;
}

/** The characters of an ETag in S3 and other stores: visible ASCII without the quote. */
const OPAQUE_TAG = /^"?([!#-~]{1,256})"?$/;

/** The ETag with quotes, as S3 and the commit record have it. @returns undefined if the text is not a strong ETag */
export function normalEtag(etag: string): string | undefined {
  const tag = OPAQUE_TAG.exec(etag)?.[1];
  const quotes = etag.startsWith('"') === etag.endsWith('"');
  return tag !== undefined && quotes && !etag.startsWith('W/') && etag !== '*' ? `"${tag}"` : undefined;
}
