import * as z from 'zod/mini';
import type { Committed } from '../../shared/commits/answers.ts';
import { PROTOCOLS } from '../../shared/commits/dependencies.ts';
import type { InFlightPage, PathInFlight } from '../../shared/commits/in-flight.ts';
import type { Fence } from '../../shared/commits/metadata.ts';
import type { CommitView, InFlight } from '../../shared/commits/read.ts';
import type { StagedUpload } from '../../shared/commits/stage.ts';
import { always, component, count, flag, instant, list, nullable, oneOf, text, texts } from '../schema.ts';

const path = () => text('The key of the object in the bucket.');

export const committed = component<Committed>()(
  'Commit',
  'A commit that has landed.',
  z.strictObject({
    path: path(),
    etag: nullable(
      text('Of what was committed, with its quotes. Null where others have replaced it by the time of the answer.'),
    ),
    currentEtag: z.exactOptional(text('There, the ETag of what is there now.')),
    versionId: z.exactOptional(text('The version of the object, in a bucket that keeps versions.')),
    size: nullable(count('In bytes. Null where `etag` is.')),
    commitId: text('The id of the commit, sent or made by the service.'),
    generation: z.exactOptional(count('How often the precondition was contended.')),
    protocol: oneOf(PROTOCOLS, 'How the deployment decides who wins.'),
    repeated: flag('Whether the commit may have landed before this call.'),
  }),
);

export const fence = component<Fence>()(
  'Fence',
  'The lease that an object belongs to.',
  z.strictObject({ key: text("The lease's key."), token: count('The highest fence that has written the object.') }),
);

const inFlightFields = () => ({
  generation: count('How often the state was contended.'),
  timeoutMs: nullable(count('How long its writer may take, in milliseconds.')),
  commitId: nullable(text('Null where another client writes.')),
  writtenAt: nullable(instant('When it began. Null where another client writes.')),
});

const inFlight = component<InFlight>()(
  'CommitInFlight',
  'A commit to this state of the path that has begun and has not replaced it. Its writer may have died.',
  z.strictObject(inFlightFields()),
);

const pathInFlight = component<PathInFlight>()(
  'PathInFlight',
  'A commit that has begun and has not replaced what it found. Its writer may have died.',
  z.strictObject({
    path: path(),
    expectedEtag: nullable(text('What it replaces, with its quotes. Null where it creates the object.')),
    ...inFlightFields(),
    remainingMs: nullable(
      count("What was left of its writer's time when the service answered. Null where another client writes."),
    ),
  }),
);

export const inFlightPage = component<InFlightPage>()(
  'InFlightPage',
  'A page of commits that are under way. It may be empty and still have a cursor.',
  z.strictObject({
    protocol: oneOf(PROTOCOLS, 'How the deployment decides who wins.'),
    commits: list(pathInFlight, 'In no particular order.'),
    nextCursor: nullable(text('Passed as `cursor`, it gets the next page. Null on the last page.')),
  }),
);

export const commitView = component<CommitView>()(
  'StoredObject',
  'What is at a path. All fields of the object are null where nothing is there.',
  z.strictObject({
    path: path(),
    etag: nullable(text('With its quotes.')),
    versionId: nullable(text('In a bucket that keeps versions.')),
    size: nullable(count('In bytes.')),
    contentType: nullable(text('The media type.')),
    metadata: nullable(texts('What callers put on the object.')),
    commitId: nullable(text('The commit that wrote the object. Null where another client wrote it.')),
    fence: z.nullable(fence),
    inFlight: z.nullable(inFlight),
  }),
);

export const stagedUpload = component<StagedUpload>()(
  'Upload',
  'Where to put what a commit then names as its source.',
  z.strictObject({
    uploadId: text('Names the upload as the `source` of a commit.'),
    url: text('Where to send the bytes. It is signed.'),
    method: always('PUT', 'How to send them.'),
    headers: texts('To send along. They are part of the signature.'),
    expiresAt: instant('When the URL ends. An upload under way then goes on.'),
  }),
);
