import { DeleteObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { text } from '../aws/attributes.ts';
import { aliased, all, any } from '../aws/condition.ts';
import { headObject } from '../aws/s3.ts';
import { attempt, reading, send, toHoldfastError, writing } from '../aws/send.ts';
import { agedBy, type ExpiredRow, holderNamed, identityOf } from '../expiry/sources/rows.ts';
import type { ExpirySource } from '../expiry/sources/source.ts';
import { tableSource } from '../expiry/sources/table.ts';
import { readTtl, reasonWithTtl, ttlIsOver, ttlIsUnreadable } from '../expiry/sources/ttl.ts';
import { STAGING_FOLDER } from '../folders.ts';
import { OBSERVATION_PREFIX } from './observations.ts';
import { idsOf } from './record.ts';

const IDENTITY = ['generation', 'ttl', 'timeout', 'written_at', 'seen_at'] as const;

/** The item is a commit record: its range key is `*` or an ETag in quotes. */
const isRecordRow = aliased(
  '(#etag = :create OR begins_with(#etag, :quote)) AND attribute_type(#generation, :number) AND attribute_type(#timeout, :number)',
  { ':create': text('*'), ':quote': text('"'), ':number': text('N') },
);
const isObservation = aliased('begins_with(#etag, :observation) AND attribute_type(#seen_at, :number)', {
  ':observation': text(OBSERVATION_PREFIX),
  ':number': text('N'),
});

/**
 * Commit records of this service and of other clients, and the observations of when a record of another client was
 * first seen.
 */
export const COMMITS = tableSource<'commit' | 'firstSight'>({
  location: ({ commitsTable }) => commitsTable,
  kinds: ['commit', 'firstSight'],
  key: ['path', 'etag'],
  attributes: [...IDENTITY, 'commit_id'],
  filter: (now) => all(any(isRecordRow, isObservation), any(ttlIsOver('ttl', now), ttlIsUnreadable('ttl'))),
  row: (item, now) => {
    const etag = item.etag?.S ?? '';
    const isFirstSight = etag.startsWith(OBSERVATION_PREFIX);
    const holder = holderNamed(idsOf(item.commit_id)[0]);
    const { atMs, fault } = readTtl(item.ttl, now);
    const writer = holder === null ? "another client's commit" : `commit ${holder}`;
    const whose = isFirstSight ? "the note of when another client's record was first seen" : `the record of ${writer}`;
    const what = atMs === undefined ? `it is ${whose}` : `${whose} is past its ttl`;
    return {
      kind: isFirstSight ? 'firstSight' : 'commit',
      key: { path: item.path?.S ?? '', etag },
      holder,
      ...agedBy(atMs, now),
      ...reasonWithTtl(what, fault),
      identity: identityOf(item, IDENTITY),
    };
  },
  // Another client may still count the timeout of the record.
  reasonToSpare: ({ kind, expiredAt, identity }, { maxClockSkewRate }, now) => {
    const { timeout } = identity ?? {};
    const countedMs = kind === 'commit' && timeout && 'N' in timeout ? Number(timeout.N) * maxClockSkewRate : 0;
    return expiredAt !== null && now - Date.parse(expiredAt) <= countedMs ? 'tooYoung' : undefined;
  },
});

/** A staged upload that is older than a day counts as expired: no commit is expected to use it. */
const UPLOAD_SECONDS = 86_400;

/** The most objects that S3 lists in one request. */
const MAX_LISTED = 1000;

/** Staged uploads that were not committed. */
export const UPLOADS: ExpirySource<'upload'> = {
  location: ({ bucket }) => bucket,
  kinds: ['upload'],
  segmented: false,
  page: async ({ s3, locations: { bucket }, pageRows, clock }, { after }, call) => {
    const now = clock.now();
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      Prefix: STAGING_FOLDER,
      MaxKeys: Math.min(pageRows, MAX_LISTED),
      ...(typeof after === 'string' && { StartAfter: after }),
    });
    const { Contents: objects = [], IsTruncated: more } = await send(
      s3,
      { command, operation: reading(`bucket ${bucket}`) },
      call,
    );
    const rows = objects.flatMap(({ Key: path = '', ETag: etag = '', LastModified: modified }) => {
      if (!modified) return [];
      const expiredAt = modified.getTime() + UPLOAD_SECONDS * 1000;
      return expiredAt < now ? [uploadRow({ path, etag, modified, expiredAt }, now)] : [];
    });
    return { rows, scanned: objects.length, readUnits: 0, after: more ? objects.at(-1)?.Key : undefined };
  },
  // S3 deletes on the condition of an ETag only, and the same bytes have the same ETag if they are uploaded again. So
  // the time of the upload is read before.
  remove: async ({ s3, locations: { bucket } }, { key: { path = '' }, identity }, call) => {
    const [etag, modifiedAt] = [identity?.etag, identity?.modifiedAt].map((value) =>
      value && 'S' in value ? value.S : '',
    );
    if (!etag || !modifiedAt) return 'unrecognisable';
    const standing = await headObject(s3, { bucket, key: path }, call);
    if (!standing) return 'gone';
    const isSame = standing.ETag === etag && epochSeconds(standing.LastModified) === epochSeconds(new Date(modifiedAt));
    if (!isSame) return 'changed';
    const command = new DeleteObjectCommand({ Bucket: bucket, Key: path, IfMatch: etag });
    const outcome = await attempt(s3, { command }, call);
    if ('output' in outcome) return undefined;
    const { error, unanswered } = outcome;
    const status = error.$metadata?.httpStatusCode;
    if (status === 404) return unanswered ? undefined : 'gone';
    if (status === 412 || status === 409) return 'changed';
    throw toHoldfastError(error, writing(`bucket ${bucket}`), unanswered);
  },
};

interface AbandonedUpload {
  path: string;
  etag: string;
  modified: Date;
  expiredAt: number;
}

const uploadRow = ({ path, etag, modified, expiredAt }: AbandonedUpload, now: number): ExpiredRow<'upload'> => ({
  kind: 'upload',
  key: { path },
  holder: null,
  ...agedBy(expiredAt, now),
  reason: 'it was uploaded more than a day ago, and no commit is expected to use it',
  neverDeletable: false,
  ttlFault: null,
  identity: { etag: text(etag), modifiedAt: text(modified.toISOString()) },
});

/** The time in whole seconds, because a HEAD does not give fractions. */
const epochSeconds = (at: Date | undefined) => Math.floor((at?.getTime() ?? Number.NaN) / 1000);
