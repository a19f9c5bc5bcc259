import type { commitObject, replaceFence } from '../../shared/commits/commit.ts';
import type { listInFlight } from '../../shared/commits/in-flight.ts';
import type { readPath } from '../../shared/commits/read.ts';
import type { signUpload } from '../../shared/commits/stage.ts';
import { committed, commitView, inFlightPage, stagedUpload } from '../answers/commits.ts';
import { examplesOf } from '../examples.ts';
import {
  commitRequest,
  readCommitRequest,
  readInFlightRequest,
  resetFenceRequest,
  uploadRequest,
} from '../requests/commits.ts';
import type { AnswerOf } from '../schema.ts';
import { route } from './route.ts';

export const COMMIT_ROUTES = [
  route<AnswerOf<typeof commitObject>>({
    function: 'commit',
    method: 'POST',
    path: '/v1/commits',
    tag: 'Commits',
    summary: 'Commit an object',
    description:
      'Creates an object, or replaces the object that has the expected ETag. If several callers create an object at the same path, or replace the same ETag, only one of them wins. A retry with the same `commitId` receives the outcome of the first try.',
    request: commitRequest,
    success: {
      201: { description: 'The object is committed.', answer: committed },
      200: { description: 'The object was committed by an earlier try.', answer: committed },
    },
    errors: ['NotFound', 'CommitInProgress', 'PreconditionFailed', 'FenceRejected', 'OutcomeUnknown'],
    when: { NotFound: 'There is no upload under `source`.' },
    examples: examplesOf('commit'),
  }),
  route<AnswerOf<typeof signUpload>>({
    function: 'stageUpload',
    method: 'POST',
    path: '/v1/uploads',
    tag: 'Commits',
    summary: 'Stage an upload',
    description:
      'Returns a signed URL for the bytes of an object, such as one that is too large for `body`. A commit then names the `uploadId` as its `source`.',
    request: uploadRequest,
    success: { 201: { description: 'Where to send the bytes.', answer: stagedUpload } },
    errors: [],
    examples: examplesOf('stageUpload'),
  }),
  route<AnswerOf<typeof replaceFence>>({
    function: 'resetFence',
    method: 'POST',
    path: '/v1/commits/reset-fence',
    tag: 'Commits',
    summary: 'Replace or lift a fence',
    description:
      'For an administrator who has read the ETag and the fence of an object. The bytes stay, but the ETag changes. After a reset, the object must be committed to before its fence can be reset again.',
    request: resetFenceRequest,
    success: { 200: { description: 'The fence is replaced.', answer: committed } },
    errors: ['CommitInProgress', 'PreconditionFailed', 'OutcomeUnknown'],
    scope: 'resetFenceScope',
    examples: examplesOf('resetFence'),
  }),
  route<AnswerOf<typeof readPath>>({
    function: 'readCommit',
    method: 'GET',
    path: '/v1/commits',
    tag: 'Commits',
    summary: 'Read an object and its commits',
    description: 'Reads the ETag, the metadata and the fence of an object, and whether a commit is under way.',
    request: readCommitRequest,
    success: { 200: { description: 'The object, or null fields if there is none.', answer: commitView } },
    errors: [],
    examples: examplesOf('readCommit'),
  }),
  route<AnswerOf<typeof listInFlight>>({
    function: 'readInFlight',
    method: 'GET',
    path: '/v1/commits/in-flight',
    tag: 'Commits',
    summary: 'List commits in flight',
    description:
      'Lists commits that have begun and have not replaced the object yet. The call scans the commit records, and reads the object of each recent one. With `commitProtocol=native` Holdfast does not write records, so the list shows only commits of third-party clients.',
    request: readInFlightRequest,
    success: { 200: { description: 'A page of commits.', answer: inFlightPage } },
    errors: [],
    examples: examplesOf('readInFlight'),
  }),
];
