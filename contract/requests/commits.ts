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
    'Creates or replaces an object on a precondition. One of `ifNoneMatch` and `ifMatch`, and one of `body` and `source`, is required.',
  fields: {
    path: path(),
    ifNoneMatch: { description: 'Creates the object: no object may be at the path.' },
    ifMatch: { description: 'Replaces the object, which must have this ETag.', pattern: STRONG_ETAG },
    body: {
      description:
        'The content, up to 1 MiB: text, or base64 with padding if `encoding` says so. For more, stage an upload.',
    },
    encoding: { description: 'The encoding of `body`. Without it, utf8.' },
    source: { description: 'The `uploadId` of a staged upload, in place of a body.' },
    sourceEtag: {
      description: 'The ETag of the upload, as S3 answered it. The commit fails if the upload has another ETag.',
      pattern: STRONG_ETAG,
    },
    contentType: contentType('The media type. Without it, that of the upload, or application/octet-stream.'),
    cacheControl: {
      description: 'The Cache-Control header to store with the object. A header of the upload is dropped.',
    },
    contentDisposition: {
      description: 'The Content-Disposition header to store with the object. A header of the upload is dropped.',
    },
    contentEncoding: {
      description:
        'The Content-Encoding header to store with the object, but not aws-chunked, which S3 uses itself. A header of the upload is dropped.',
    },
    metadata: {
      description:
        'The metadata of the object: at most 32 lower-case names, and 1 KiB in all. Names do not begin with `holdfast-`, and values are printable ASCII without `=?`.',
      type: 'object',
      maxProperties: 32,
      propertyNames: { pattern: '^(?!holdfast-)[a-z0-9][a-z0-9._-]*$' },
      additionalProperties: { type: 'string', pattern: '^(?!.*=\\?)[!-~]([ -~]*[!-~])?$' },
    },
    commitId: {
      description:
        'The id of one commit, with its path, precondition and content: a retry with the same id receives the outcome of the first try. Without it, the service makes one. Up to 64 printable ASCII characters without spaces and `=?`.',
      pattern: '^(?!.*=\\?)[!-~]{1,64}$',
    },
    fence: {
      description: 'Ties the object to a lease: only commits with this key and a token at least as high replace it.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: {
          description: 'The `fence` of the grant. At most a day ahead of the clock, in milliseconds.',
        },
      },
    },
    waitSeconds: { description: 'How long to wait for a commit of a foreign client, in seconds.' },
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
    ifMatch: { description: 'The ETag that the object must have.', pattern: STRONG_ETAG },
    expectedFence: {
      description: 'The fence that the object must have.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: { description: 'The highest token that has written the object.' },
      },
    },
    fence: {
      description: 'The fence that commits need from then on. Null lifts the fence.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: {
          description: 'The lowest token that may write the object. At most a day ahead of the clock, in milliseconds.',
        },
      },
    },
    commitId: {
      description:
        'The id of this reset: a retry with the same id receives the outcome of the first try. Up to 64 printable ASCII characters without spaces and `=?`.',
      pattern: '^(?!.*=\\?)[!-~]{1,64}$',
    },
    waitSeconds: { description: 'How long to wait for a commit of a foreign client, in seconds.' },
  },
});

export const uploadRequest = request(uploadInput(), {
  id: 'UploadRequest',
  description: 'Stages an upload.',
  fields: {
    contentType: contentType('The media type, which becomes part of the signature.'),
    sizeBytes: { description: 'The size in bytes, which becomes part of the signature.' },
  },
});

export const readCommitRequest = request(readInput(), {
  id: 'ReadCommitRequest',
  description: 'Reads the object at a path.',
  fields: { path: path() },
});

export const readInFlightRequest = request(inFlightInput(), {
  id: 'ReadInFlightRequest',
  description: 'Lists commits in flight.',
  fields: {
    prefix: { description: 'Only paths that begin with this text.', ...bytes(1024) },
    limit: limit(),
    cursor: cursor(),
  },
});
