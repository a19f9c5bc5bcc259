import type { committer, fenceResetter } from '../../shared/commits/commit.ts';
import type { inFlightReader } from '../../shared/commits/in-flight.ts';
import type { reader } from '../../shared/commits/read.ts';
import type { stager } from '../../shared/commits/stage.ts';
import { committed, commitView, inFlightPage, stagedUpload } from '../answers/commits.ts';
import {
  commitRequest,
  readCommitRequest,
  readInFlightRequest,
  resetFenceRequest,
  uploadRequest,
} from '../requests/commits.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

const path = 'log/00042.json';
const etag = '"5f2fc4d990d2083ad30e14786904b67c"';
const uploadId = '348ddc17-752f-443f-8bb3-64703e5ccfed';

export const COMMIT_ROUTES = [
  route<AnswerOf<typeof committer>>({
    function: 'commit',
    method: 'POST',
    path: '/v1/commits',
    tag: 'Commits',
    summary: 'Create or replace an object on a precondition',
    description:
      'Of all callers that create an object at one path, or replace one and the same ETag, exactly one wins. A repeat with the same `commitId` is answered with what became of the commit.',
    request: commitRequest,
    success: {
      201: { description: 'The commit has landed.', answer: committed },
      200: { description: 'The commit had landed before.', answer: committed },
    },
    errors: [...(['NotFound', 'CommitInProgress', 'PreconditionFailed', 'FenceRejected'] as const), 'OutcomeUnknown'],
    examples: [
      {
        name: 'created',
        summary: 'A new object',
        request: { path, ifNoneMatch: '*', commitId: 'job-7', body: '{"by":7}', contentType: 'application/json' },
        status: 201,
        answer: { path, etag, size: 8, commitId: 'job-7', generation: 0, protocol: 'dynamo', repeated: false },
      },
      {
        name: 'repeated',
        summary: 'The same commit again',
        request: { path, ifNoneMatch: '*', commitId: 'job-7', body: '{"by":7}', contentType: 'application/json' },
        status: 200,
        answer: { path, etag, size: 8, commitId: 'job-7', protocol: 'dynamo', repeated: true },
      },
      {
        name: 'refused',
        summary: 'Another object is there',
        request: { path, ifMatch: '"df185e6be5d34383dba1f166d50388de"', commitId: 'job-8', body: '{"by":8}' },
        status: 412,
        answer: {
          type: 'urn:holdfast:error:PreconditionFailed',
          title: 'The object is not in the expected state',
          status: 412,
          code: 'PreconditionFailed',
          detail: 'the object at the path has another ETag',
          traceId: '19bb647e-aa3c-4359-bdc4-b1ead1c05173',
          path,
          etag,
        },
      },
      {
        name: 'fromUpload',
        summary: 'A staged upload, under a lease',
        request: {
          path: 'data/part-0',
          ifNoneMatch: '*',
          commitId: 'part-0',
          source: uploadId,
          metadata: { rows: '1' },
          fence: { key: 'nightly-report', token: 1795215137091 },
        },
        status: 201,
        answer: {
          path: 'data/part-0',
          etag: '"335b86f7467f1282c9cdc20ccf98c4c9"',
          size: 11350,
          commitId: 'part-0',
          generation: 0,
          protocol: 'dynamo',
          repeated: false,
        },
      },
    ],
  }),
  route<AnswerOf<typeof stager>>({
    function: 'stageUpload',
    method: 'POST',
    path: '/v1/uploads',
    tag: 'Commits',
    summary: 'Reserve a place for an upload',
    description: 'Signs a URL to upload bytes to. A commit then names the `uploadId` as its `source`.',
    request: uploadRequest,
    success: { 201: { description: 'Where to upload.', answer: stagedUpload } },
    errors: [],
    examples: [
      {
        name: 'staged',
        summary: 'A text of unknown size',
        request: { contentType: 'text/plain' },
        status: 201,
        answer: {
          uploadId,
          url: `https://holdfast-prod.s3.eu-west-1.amazonaws.com/.holdfast/staging/${uploadId}?X-Amz-Signature=ae5d`,
          method: 'PUT',
          headers: { 'content-type': 'text/plain' },
          expiresAt: '2026-11-21T00:12:35.777Z',
        },
      },
    ],
  }),
  route<AnswerOf<typeof fenceResetter>>({
    function: 'resetFence',
    method: 'POST',
    path: '/v1/commits/reset-fence',
    tag: 'Commits',
    summary: 'Replace or lift the fence of an object',
    description:
      'For an administrator who has seen the ETag and the fence of an object. The bytes stay, the ETag changes. The next reset of the object must wait for a commit.',
    request: resetFenceRequest,
    success: { 200: { description: 'The fence is replaced.', answer: committed } },
    errors: ['CommitInProgress', 'PreconditionFailed', 'OutcomeUnknown'],
    scope: 'resetFenceScope',
    examples: [
      {
        name: 'lifted',
        summary: 'A fence that nobody could outbid',
        request: {
          path,
          ifMatch: etag,
          expectedFence: { key: 'nightly-report', token: 1795215137091 },
          fence: null,
          commitId: 'reset-1',
        },
        status: 200,
        answer: {
          path,
          etag: '"7a9aaae3dc841d9a14b21f0b57984c38-1"',
          size: 8,
          commitId: 'reset-1',
          generation: 0,
          protocol: 'dynamo',
          repeated: false,
        },
      },
    ],
  }),
  route<AnswerOf<typeof reader>>({
    function: 'readCommit',
    method: 'GET',
    path: '/v1/commits',
    tag: 'Commits',
    summary: 'Read what is at a path',
    description: 'Reads the ETag, the metadata and the fence of an object, and whether a commit is under way.',
    request: readCommitRequest,
    success: { 200: { description: 'What is there.', answer: commitView } },
    errors: [],
    examples: [
      {
        name: 'there',
        summary: 'An object',
        request: { path },
        status: 200,
        answer: {
          path,
          etag,
          versionId: null,
          size: 8,
          contentType: 'application/json',
          metadata: {},
          commitId: 'job-7',
          fence: null,
          inFlight: null,
        },
      },
    ],
  }),
  route<AnswerOf<typeof inFlightReader>>({
    function: 'readInFlight',
    method: 'GET',
    path: '/v1/commits/in-flight',
    tag: 'Commits',
    summary: 'List the commits that are under way',
    description:
      'Lists commits that have begun and have not replaced what they found. It scans the commit records, and looks at the object of each one that is young enough. With `commitProtocol=native`, the service writes no records, and the list has writers of other clients alone.',
    request: readInFlightRequest,
    success: { 200: { description: 'A page of them.', answer: inFlightPage } },
    errors: [],
    examples: [
      {
        name: 'one',
        summary: 'A commit that has not landed',
        request: { prefix: 'log/' },
        status: 200,
        answer: {
          protocol: 'dynamo',
          commits: [
            {
              path,
              expectedEtag: null,
              generation: 0,
              timeoutMs: 20_000,
              commitId: 'job-7',
              writtenAt: '2026-11-20T22:52:17.091Z',
              remainingMs: 12_345,
            },
          ],
          nextCursor: null,
        },
      },
    ],
  }),
];
