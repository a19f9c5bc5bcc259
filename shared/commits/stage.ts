import { PutObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { Call } from '../aws/call.ts';
import { uploadTooLarge } from './answers.ts';
import type { UploadDependencies } from './dependencies.ts';
import type { UploadInput } from './inputs.ts';
import { stagingKey } from './paths.ts';

/** How to upload the bytes that a commit then names as its `source`. */
export interface StagedUpload {
  uploadId: string;
  url: string;
  method: 'PUT';
  /** The headers that the upload must send, because they are part of the signature. */
  headers: Record<string, string>;
  /** When the URL expires. An upload that has begun by then continues. */
  expiresAt: string;
}

const URL_SECONDS = 900;

/**
 * Signs a URL for an upload into the staging folder. The call does not send a request to S3.
 * @throws HoldfastError PayloadTooLarge
 */
export function signUpload({ s3, clock, ids, bucket, maxUploadBytes }: UploadDependencies) {
  return async (
    { contentType, sizeBytes }: UploadInput,
    { namespace }: Pick<Call, 'namespace'> = {},
  ): Promise<StagedUpload> => {
    if ((sizeBytes ?? 0) > maxUploadBytes) throw uploadTooLarge(maxUploadBytes);
    const uploadId = ids.uuid();
    const now = clock.now();
    const command = new PutObjectCommand({
      Bucket: bucket,
      Key: stagingKey(uploadId, namespace),
      ...(contentType !== undefined && { ContentType: contentType }),
      ...(sizeBytes !== undefined && { ContentLength: sizeBytes }),
    });
    const headers = {
      ...(contentType !== undefined && { 'content-type': contentType }),
      ...(sizeBytes !== undefined && { 'content-length': String(sizeBytes) }),
    };
    const url = await getSignedUrl(s3, command, {
      expiresIn: URL_SECONDS,
      signingDate: new Date(now),
      signableHeaders: new Set(Object.keys(headers)),
    });
    return { uploadId, url, method: 'PUT', headers, expiresAt: new Date(now + URL_SECONDS * 1000).toISOString() };
  };
}
