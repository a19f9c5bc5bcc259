import { ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3';
import type { Call } from '../aws/call.ts';
import { send } from '../aws/send.ts';
import { STAGING_FOLDER } from '../folders.ts';
import { reads } from './dependencies.ts';
import { agedBy, type ExpiredRow } from './rows.ts';
import { text } from './values.ts';

/** What a day after its upload no commit has taken, none is expected to. */
const UPLOAD_SECONDS = 86_400;

export interface UploadPage {
  rows: ExpiredRow[];
  scanned: number;
  /** Undefined after the last page. */
  lastPath: string | undefined;
}

/** One page of the staging folder. @throws HoldfastError Throttled, Unavailable */
export async function uploadPage(
  { s3, bucket, pageRows }: { s3: S3Client; bucket: string; pageRows: number },
  after: string | undefined,
  now: number,
  call: Call,
): Promise<UploadPage> {
  const command = new ListObjectsV2Command({
    Bucket: bucket,
    Prefix: STAGING_FOLDER,
    MaxKeys: Math.min(pageRows, 1000),
    ...(after !== undefined && { StartAfter: after }),
  });
  const { Contents: objects = [], IsTruncated: more } = await send(s3, command, reads(`bucket ${bucket}`), call);
  const rows = objects.flatMap(({ Key: path = '', ETag: etag = '', LastModified: modified }) => {
    const expiredAt = modified && modified.getTime() + UPLOAD_SECONDS * 1000;
    return expiredAt === undefined || expiredAt >= now
      ? []
      : [row(path, etag, modified?.toISOString() ?? '', expiredAt)];
  });
  return { rows, scanned: objects.length, lastPath: more ? objects.at(-1)?.Key : undefined };

  function row(path: string, etag: string, modifiedAt: string, expiredAt: number): ExpiredRow {
    return {
      kind: 'upload',
      key: { path },
      holder: null,
      ...agedBy(expiredAt, now),
      reason: 'it was uploaded more than a day ago, and no commit is expected to take it any more',
      neverDeletable: false,
      ttlFault: null,
      identity: { etag: text(etag), modifiedAt: text(modifiedAt) },
    };
  }
}
