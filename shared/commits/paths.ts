import { OWN_FOLDER, STAGING_FOLDER } from '../folders.ts';
import { prefixOf } from '../namespace.ts';

/** An upload of a namespace lies in a folder of its own, where no commit of another namespace finds it. */
export const stagingKey = (uploadId: string, namespace?: string) =>
  `${STAGING_FOLDER}${namespace === undefined ? '' : prefixOf(namespace)}${uploadId}`;

/** The name of a copy's source: the header wants the key encoded, except for its slashes. */
export const copySource = (bucket: string, key: string) =>
  `${bucket}/${key.split('/').map(encodeURIComponent).join('/')}`;

/**
 * Says what is wrong with a path. Undefined if nothing is. A path is the S3 key and the key of the commit record, byte for byte;
 * HTTP clients on the way rewrite empty and dotted segments, and two paths would become one.
 */
export function pathFault(path: string): string | undefined {
  if (path === '') return undefined; // the schema's own
  const segments = path.split('/');
  if (path.startsWith('/')) return 'must not begin with a slash';
  if (segments.some((segment) => segment === '')) return 'must not have an empty segment';
  if (segments.some((segment) => segment === '.' || segment === '..')) return "must not have a segment '.' or '..'";
  if (segments[0] === OWN_FOLDER) return `must not be under ${OWN_FOLDER}/, which is the service's own`;
  return undefined;
}

/** Visible ASCII without the quote: what S3 and other stores make ETags of. */
const OPAQUE_TAG = /^"?([!#-~]{1,256})"?$/;

/** The ETag with its quotes, as S3 sends it and the commit record holds it. Undefined if it is not a strong ETag. */
export function normalEtag(etag: string): string | undefined {
  const tag = OPAQUE_TAG.exec(etag)?.[1];
  const quotes = etag.startsWith('"') === etag.endsWith('"');
  return tag !== undefined && quotes && !etag.startsWith('W/') && etag !== '*' ? `"${tag}"` : undefined;
}
