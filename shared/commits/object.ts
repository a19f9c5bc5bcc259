import type { Call } from '../aws/call.ts';
import { headObject } from '../aws/s3.ts';
import type { CommitDependencies } from './dependencies.ts';
import { parseServiceMetadata, type ServiceMetadata, userMetadata } from './metadata.ts';
import type { Headers } from './request.ts';

export interface StoredObject {
  /** The ETag with its quotes. */
  etag: string;
  versionId: string | undefined;
  size: number;
  headers: Headers;
  metadata: Record<string, string>;
  /** Undefined if another client wrote the object. */
  serviceMetadata: ServiceMetadata | undefined;
}

/**
 * Reads the object with a HEAD.
 * @returns undefined if there is no object
 * @throws HoldfastError Throttled, Unavailable
 */
export async function readObject(
  { s3, bucket }: CommitDependencies,
  path: string,
  call: Call,
): Promise<StoredObject | undefined> {
  const head = await headObject(s3, { bucket, key: path }, call);
  if (!head) return undefined;
  const metadata = head.Metadata ?? {};
  return {
    etag: head.ETag ?? '',
    versionId: head.VersionId,
    size: head.ContentLength ?? 0,
    headers: {
      ContentType: head.ContentType,
      ContentEncoding: head.ContentEncoding,
      ContentDisposition: head.ContentDisposition,
      ContentLanguage: head.ContentLanguage,
      CacheControl: head.CacheControl,
    },
    metadata: userMetadata(metadata),
    serviceMetadata: parseServiceMetadata(path, metadata),
  };
}
