import type { committer, fenceResetter } from '../../shared/commits/commit.ts';
import type { inFlightReader } from '../../shared/commits/in-flight.ts';
import type { reader } from '../../shared/commits/read.ts';
import type { stager } from '../../shared/commits/stage.ts';
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
    examples: examplesOf('commit'),
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
    examples: examplesOf('stageUpload'),
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
    examples: examplesOf('resetFence'),
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
    examples: examplesOf('readCommit'),
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
    examples: examplesOf('readInFlight'),
  }),
];
