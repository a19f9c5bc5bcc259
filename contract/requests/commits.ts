import { commitInput, inFlightInput, readInput, resetFenceInput, uploadInput } from '../../shared/commits/inputs.ts';
import { bytes, cursor, limit, request } from './request.ts';

const path = () => ({
  description:
    "The key of the object: 1 to 1,024 bytes of UTF-8, with no empty segment, no segment '.' or '..', and not under .holdfast/.",
  ...bytes(1024),
  pattern: '^(?!\\.holdfast(/|$))(?!\\.{1,2}(/|$))[^/]+(/(?!\\.{1,2}(/|$))[^/]+)*$',
});

/** As S3 gives it, with both quotes or with none. */
const STRONG_ETAG = '^("[!#-~]{1,256}"|(?!\\*$)(?!W/)[!#-~]{1,256})$';

const contentType = (description: string) => ({ description });

export const commitRequest = request(commitInput(), {
  id: 'CommitRequest',
  description:
    'Creates or replaces an object on a precondition. One of `ifNoneMatch` and `ifMatch`, and one of `body` and `source`, must be given.',
  fields: {
    path: path(),
    ifNoneMatch: { description: 'Create: nothing may be there.' },
    ifMatch: { description: 'Replace: exactly this ETag must be there.', pattern: STRONG_ETAG },
    body: {
      description:
        'The content, up to 1 MiB: text, or base64 with padding where `encoding` says so. Stage an upload for more.',
    },
    encoding: { description: 'How `body` is written. utf8 where it is not given.' },
    source: { description: 'The `uploadId` of a staged upload, in place of a body.' },
    sourceEtag: {
      description:
        "The upload's own ETag, as S3 answered it. The commit takes the upload only as long as it has that one.",
      pattern: STRONG_ETAG,
    },
    contentType: contentType("The media type. Without it the upload's, or else application/octet-stream."),
    cacheControl: { description: 'The Cache-Control header to store with the object.' },
    contentDisposition: { description: 'The Content-Disposition header to store with the object.' },
    contentEncoding: {
      description: 'The Content-Encoding header to store with the object. Not aws-chunked, which S3 takes for its own.',
    },
    metadata: {
      description:
        'What to put on the object: at most 32 names and 1 KiB together. Names begin with anything but `holdfast-`, values are printable ASCII without `=?`.',
      type: 'object',
      maxProperties: 32,
      propertyNames: { pattern: '^(?!holdfast-)[a-z0-9][a-z0-9._-]*$' },
      additionalProperties: { type: 'string', pattern: '^(?!.*=\\?)[!-~]([ -~]*[!-~])?$' },
    },
    commitId: {
      description: 'Names one commit, so that a repeat is answered with what became of it. Without `=?`.',
      pattern: '^(?!.*=\\?)[!-~]{1,64}$',
    },
    fence: {
      description: 'Ties the object to a lease: only commits with this key and a token at least as high replace it.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: {
          description: 'The `fence` of the grant. At most a day ahead of the clock in milliseconds.',
        },
      },
    },
    waitSeconds: { description: 'How long to wait for the commit record of another client, in seconds.' },
  },
  rules: {
    allOf: [
      { oneOf: [{ required: ['ifNoneMatch'] }, { required: ['ifMatch'] }] },
      { oneOf: [{ required: ['body'] }, { required: ['source'] }] },
    ],
    dependentRequired: { encoding: ['body'], sourceEtag: ['source'] },
  },
});

export const resetFenceRequest = request(resetFenceInput(), {
  id: 'ResetFenceRequest',
  description: 'Replaces or lifts the fence of an object that an administrator has seen.',
  fields: {
    path: path(),
    ifMatch: { description: 'Exactly this ETag must be there.', pattern: STRONG_ETAG },
    expectedFence: {
      description: 'Exactly this must be the fence of the object.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: { description: 'The highest token that has written the object.' },
      },
    },
    fence: {
      description: 'What commits must carry from then on. Null lifts the fence.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: {
          description: 'The lowest token that may write the object. At most a day ahead of the clock in milliseconds.',
        },
      },
    },
    commitId: {
      description: 'Names this reset, so that a repeat is answered with what became of it. Without `=?`.',
      pattern: '^(?!.*=\\?)[!-~]{1,64}$',
    },
    waitSeconds: { description: 'How long to wait for the commit record of another client, in seconds.' },
  },
});

export const uploadRequest = request(uploadInput(), {
  id: 'UploadRequest',
  description: 'Reserves a place for an upload.',
  fields: {
    contentType: contentType('The media type. It becomes part of the signature.'),
    sizeBytes: { description: 'How many bytes it will have. It becomes part of the signature.' },
  },
});

export const readCommitRequest = request(readInput(), {
  id: 'ReadCommitRequest',
  description: 'Reads what is at a path.',
  fields: { path: path() },
});

export const readInFlightRequest = request(inFlightInput(), {
  id: 'ReadInFlightRequest',
  description: 'Lists the commits that are under way.',
  fields: {
    prefix: { description: 'Only paths that begin so.', ...bytes(1024) },
    limit: limit(),
    cursor: cursor(),
  },
});
