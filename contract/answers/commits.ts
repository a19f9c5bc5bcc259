import * as z from 'zod/mini';
import type { Committed } from '../../shared/commits/answers.ts';
import { PROTOCOLS } from '../../shared/commits/dependencies.ts';
import type { InFlightPage, PathInFlight } from '../../shared/commits/in-flight.ts';
import type { Fence } from '../../shared/commits/metadata.ts';
import type { CommitView, InFlight } from '../../shared/commits/read.ts';
import type { StagedUpload } from '../../shared/commits/stage.ts';
import { MEANING } from '../meanings.ts';
import { always, component, count, flag, instant, list, nullable, oneOf, text, texts } from '../schema.ts';

const path = () => text(MEANING.path);

export const committed = component<Committed>()(
  'Commit',
  'A commit that has taken effect.',
  z.strictObject({
    path: path(),
    etag: nullable(
      text('The ETag of the committed object, with its quotes. Null if the object has been replaced since.'),
    ),
    currentEtag: z.exactOptional(text('The ETag of the object that is there now, if `etag` is null.')),
    versionId: z.exactOptional(text('The version of the object, if the bucket has versions.')),
    size: nullable(count('The size in bytes. Null if `etag` is null.')),
    commitId: text(`${MEANING.commitId} If the request has none, the service chooses one.`),
    generation: z.exactOptional(
      count('How often a commit has taken over the record of another one for the same precondition.'),
    ),
    protocol: oneOf(PROTOCOLS, 'The commit protocol of the deployment.'),
    repeated: flag('True if an earlier try of this commit may be the one that took effect.'),
  }),
);

export const fence = component<Fence>()(
  'Fence',
  'The fence of an object: only commits with this key and a token at least as high replace the object.',
  z.strictObject({
    key: text('The key of the lease.'),
    token: count('The highest token that has written the object.'),
  }),
);

const inFlightFields = () => ({
  generation: count('How often a commit has taken over the record of another one for the same precondition.'),
  timeoutMs: nullable(count('How long the writer may take, in milliseconds.')),
  commitId: nullable(text(`${MEANING.commitId} Null for a third-party client.`)),
  writtenAt: nullable(instant('When the commit began. Null for a third-party client.')),
});

const inFlight = component<InFlight>()(
  'CommitInFlight',
  'A commit that has begun and has not replaced the object. Its writer may have exited.',
  z.strictObject(inFlightFields()),
);

const pathInFlight = component<PathInFlight>()(
  'PathInFlight',
  'A commit that has begun and has not replaced the object. Its writer may have exited.',
  z.strictObject({
    path: path(),
    expectedEtag: nullable(
      text('The ETag that the commit replaces, with its quotes. Null if the commit creates the object.'),
    ),
    ...inFlightFields(),
    remainingMs: nullable(
      count(
        'How much of its time the writer had left when the service answered, in milliseconds. Null for a third-party client.',
      ),
    ),
  }),
);

export const inFlightPage = component<InFlightPage>()(
  'InFlightPage',
  'A page of commits in flight. A page may be empty and still have a cursor.',
  z.strictObject({
    protocol: oneOf(PROTOCOLS, 'The commit protocol of the deployment.'),
    commits: list(pathInFlight, 'The commits, in no particular order.'),
    nextCursor: nullable(text(MEANING.nextCursor)),
  }),
);

export const commitView = component<CommitView>()(
  'StoredObject',
  'The object at a path. All other fields are null if there is no object.',
  z.strictObject({
    path: path(),
    etag: nullable(text('The ETag, with its quotes.')),
    versionId: nullable(text('The version of the object, if the bucket has versions.')),
    size: nullable(count('The size in bytes.')),
    contentType: nullable(text('The media type.')),
    metadata: nullable(texts('The metadata that callers put on the object.')),
    commitId: nullable(text('The id of the commit that wrote the object. Null if a third-party client wrote it.')),
    fence: nullable(fence),
    inFlight: nullable(inFlight),
  }),
);

export const stagedUpload = component<StagedUpload>()(
  'Upload',
  'Where to send the bytes of an object, which a commit then names as its source.',
  z.strictObject({
    uploadId: text('The id of the upload, for `source` of a commit.'),
    url: text('The signed URL for the bytes.'),
    method: always('PUT', 'The method of the upload.'),
    headers: texts('The headers to send with the upload. They are part of the signature.'),
    expiresAt: instant('When the URL expires. An upload that has begun by then still completes.'),
  }),
);
