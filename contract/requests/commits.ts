import {
  commitInput,
  inFlightInput,
  readPathInput,
  resetFenceInput,
  uploadInput,
} from '../../shared/commits/inputs.ts';
import { bytes, cursor, limit, request } from './request.ts';

const path = () => ({
  description:
    "The key of the object in the bucket: 1 to 1,024 bytes of UTF-8, without empty segments and without the segments '.' and '..', and not under .holdfast/.",
  ...bytes(1024),
  pattern: '^(?!\\.holdfast(/|$))(?!\\.{1,2}(/|$))[^/]+(/(?!\\.{1,2}(/|$))[^/]+)*$',
});

/** An ETag as S3 returns it, or without its quotes. */
const STRONG_ETAG = '^("[!#-~]{1,256}"|(?!\\*$)(?!W/)[!#-~]{1,256})$';

const contentType = (description: string) => ({ description });

export const commitRequest = request(commitInput(), {
  id: 'CommitRequest',
  description:
    'Creates or replaces an object, if the object is in the state that the caller expects. Send either `ifNoneMatch` or `ifMatch`, and either `body` or `source`.',
  fields: {
    path: path(),
    ifNoneMatch: { description: 'Creates the object. The commit fails if there is an object at the path.' },
    ifMatch: {
      description: 'Replaces the object that has this ETag. The commit fails if the object has another one.',
      pattern: STRONG_ETAG,
    },
    body: {
      description:
        'The content, up to 1 MiB: text, or with `encoding` `base64` the bytes in base64 with padding. For more, stage an upload.',
    },
    encoding: { description: 'How `body` is encoded. The default is utf8.' },
    source: { description: 'The `uploadId` of a staged upload, instead of a `body`.' },
    sourceEtag: {
      description: 'The ETag that S3 returned for the upload. The commit fails if the upload has another one.',
      pattern: STRONG_ETAG,
    },
    contentType: contentType(
      'The media type of the object. The default is that of the upload, or application/octet-stream.',
    ),
    cacheControl: {
      description: 'The Cache-Control header to store with the object. The header of the upload is not kept.',
    },
    contentDisposition: {
      description: 'The Content-Disposition header to store with the object. The header of the upload is not kept.',
    },
    contentEncoding: {
      description:
        'The Content-Encoding header to store with the object, but not aws-chunked, which S3 uses itself. The header of the upload is not kept.',
    },
    metadata: {
      description:
        'Your metadata of the object: at most 32 names in lower case, and 1 KiB in all. Names do not begin with `holdfast-`, and values are printable ASCII without `=?`.',
      type: 'object',
      maxProperties: 32,
      propertyNames: { pattern: '^(?!holdfast-)[a-z0-9][a-z0-9._-]*$' },
      additionalProperties: { type: 'string', pattern: '^(?!.*=\\?)[!-~]([ -~]*[!-~])?$' },
    },
    commitId: {
      description:
        'The id of one commit, which makes retries safe: a retry with the same id, path, precondition and content receives the outcome of the first try. Without it, the service chooses one. Up to 64 printable ASCII characters without spaces and `=?`.',
      pattern: '^(?!.*=\\?)[!-~]{1,64}$',
    },
    fence: {
      description:
        'Ties the object to a lease, so that a former holder can no longer replace it: only commits with this key and a token at least as high can.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: {
          description: 'The `fence` of the grant. At most a day ahead of the current time in milliseconds since 1970.',
        },
      },
    },
    waitSeconds: { description: 'How long to wait for a commit of a third-party client, in seconds.' },
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
  description: 'Replaces or removes the fence of an object, if the object is as the administrator has read it.',
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
      description:
        'The fence that commits need from then on. Null removes the fence: every commit can then replace the object.',
      properties: {
        key: { description: 'The key of the lease.', ...bytes(256) },
        token: {
          description:
            'The lowest token that may write the object. At most a day ahead of the current time in milliseconds since 1970.',
        },
      },
    },
    commitId: {
      description:
        'The id of this reset, which makes retries safe: a retry with the same id receives the outcome of the first try. Up to 64 printable ASCII characters without spaces and `=?`.',
      pattern: '^(?!.*=\\?)[!-~]{1,64}$',
    },
    waitSeconds: { description: 'How long to wait for a commit of a third-party client, in seconds.' },
  },
});

export const uploadRequest = request(uploadInput(), {
  id: 'UploadRequest',
  description: 'Asks for a signed URL for the bytes of an object.',
  fields: {
    contentType: contentType(
      'The media type of the object. It becomes part of the signature, so the upload must send the same.',
    ),
    sizeBytes: {
      description: 'The size in bytes. It becomes part of the signature, so the upload must have exactly this size.',
    },
  },
});

export const readCommitRequest = request(readPathInput(), {
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
