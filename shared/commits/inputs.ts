import * as z from 'zod/mini';
import { callersName, cursorText, limit, name, oneOf, whole } from '../fields.ts';
import type { NameFields } from '../namespace.ts';
import { METADATA_PREFIX } from './metadata.ts';
import { normalEtag, pathFault } from './paths.ts';

/** The most bytes that S3 accepts in one PUT, or copies in one request. */
const MAX_UPLOAD_BYTES = 5 * 1024 ** 3;
/**
 * The largest payload of a commit: a body of 1 MiB whose characters JSON escapes with six bytes each, and 64 KiB for
 * the other fields.
 */
export const MAX_COMMIT_BYTES = 6 * 1024 ** 2 + 64 * 1024;
const MAX_METADATA_BYTES = 1024;
/** Each entry is a header of its own, and S3 limits the headers of a request. */
const MAX_METADATA_NAMES = 32;

/** The beginning of an encoded word (RFC 2047). S3 decodes text that looks like one, and would store another text. */
const ENCODED_WORD = '=?';

// The schemas are functions, so that each Lambda function builds only its own.

const textField = (rule: string) =>
  z.string({ error: ({ input }) => (input === undefined ? 'is missing' : `must be ${rule}`) });

const path = () =>
  name(1024).check(
    z.check((ctx) => {
      const message = pathFault(ctx.value);
      if (message) ctx.issues.push({ code: 'custom', message, input: ctx.value });
    }),
  );

const etag = () =>
  z.pipe(
    textField('an ETag').check(
      z.refine((value) => normalEtag(value) !== undefined, 'must be a strong ETag, as S3 returns it'),
    ),
    z.transform((value) => normalEtag(value) ?? value),
  );

/** A header that S3 stores with the object and sends to readers. */
const storedHeader = (what: string) =>
  textField(what).check(z.regex(/^[!-~](?:[ -~]{0,254}[!-~])?$/, 'must be printable ASCII, at most 256 bytes'));

const contentEncoding = () =>
  storedHeader('a content encoding').check(
    z.refine((value) => !/aws-chunked/i.test(value), 'must not contain aws-chunked, which S3 reserves'),
  );

const METADATA_NAME_RULE = "must be named in lower case: a-z, 0-9, '.', '_', '-'";

const metadata = () =>
  z.pipe(
    z.unknown().check(
      z.check((ctx) => {
        if (typeof ctx.value !== 'object' || ctx.value === null) return;
        const fail = (message: string, ...field: string[]) =>
          ctx.issues.push({ code: 'custom', path: field, message, input: ctx.value });
        // The number is checked before the names: each wrong name adds an issue to the answer, and a body has room for
        // 200,000 names.
        if (Object.keys(ctx.value).length > MAX_METADATA_NAMES) fail(`must have at most ${MAX_METADATA_NAMES} names`);
        // z.record would ignore this name silently.
        if (Object.hasOwn(ctx.value, '__proto__')) fail(METADATA_NAME_RULE, '__proto__');
      }),
    ),
    metadataRecord(),
  );

const metadataRecord = () =>
  z.record(z.string(), z.string('must be a string'), { error: 'must be an object of strings' }).check(
    z.check((ctx) => {
      const fail = (message: string, ...field: string[]) =>
        ctx.issues.push({ code: 'custom', path: field, message, input: ctx.value });
      for (const [field, value] of Object.entries(ctx.value)) {
        if (!/^[a-z0-9][a-z0-9._-]*$/.test(field)) fail(METADATA_NAME_RULE, field);
        else if (field.startsWith(METADATA_PREFIX)) fail(`must not be named ${METADATA_PREFIX}*`, field);
        // HTTP removes blanks around a header's value, and S3 removes an empty value.
        if (!/^[!-~](?:[ -~]*[!-~])?$/.test(value)) fail('must be printable ASCII without spaces around it', field);
        else if (value.includes(ENCODED_WORD)) fail(`must not contain ${ENCODED_WORD}, which S3 decodes`, field);
      }
      const bytes = Object.entries(ctx.value).flat().join('').length;
      if (bytes > MAX_METADATA_BYTES) fail(`must be at most ${MAX_METADATA_BYTES} bytes, names and values together`);
    }),
  );

const commitId = () =>
  textField('a string').check(
    z.regex(/^[!-~]{1,64}$/, 'must be 1 to 64 visible ASCII characters'),
    z.refine((value) => !value.includes(ENCODED_WORD), `must not contain ${ENCODED_WORD}, which S3 decodes`),
  );

const fence = (key = callersName(256)) =>
  z.strictObject(
    { key, token: whole(0, Number.MAX_SAFE_INTEGER) },
    { error: ({ input }) => (input === undefined ? 'is missing' : 'must be an object of key and token') },
  );

const waitSeconds = () => z._default(whole(0, 20), 0);

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Whether the text is base64 in the standard alphabet, padded. */
const isBase64 = (value: string) => value.length % 4 === 0 && BASE64.test(value);

type CombinedField = 'ifMatch' | 'ifNoneMatch' | 'body' | 'source' | 'sourceEtag' | 'encoding';

function* combinationFaults(
  fields: Partial<Record<CombinedField, string | undefined>>,
): Generator<[field: CombinedField, message: string]> {
  const { ifMatch, ifNoneMatch, body, source, sourceEtag, encoding } = fields;
  if (ifMatch === undefined && ifNoneMatch === undefined) yield ['ifMatch', 'is missing: send ifMatch or ifNoneMatch'];
  if (ifMatch !== undefined && ifNoneMatch !== undefined) yield ['ifNoneMatch', 'cannot be combined with ifMatch'];
  if (body === undefined && source === undefined) yield ['body', 'is missing: send a body or a source'];
  if (body !== undefined && source !== undefined) yield ['source', 'cannot be combined with body'];
  if (encoding !== undefined && body === undefined) yield ['encoding', 'needs a body'];
  if (sourceEtag !== undefined && source === undefined) yield ['sourceEtag', 'needs a source'];
  if (body !== undefined && encoding === 'base64' && !isBase64(body)) yield ['body', 'must be base64, padded'];
  // UTF-8 would replace a lone surrogate with another character, and the object would differ from the request.
  if (body !== undefined && encoding !== 'base64' && !body.isWellFormed())
    yield ['body', 'must be well-formed Unicode'];
}

export const commitInput = () =>
  z
    .strictObject({
      path: path(),
      /** Creates the object: the path must be empty. */
      ifNoneMatch: z.optional(oneOf(['*'])),
      /** Replaces the object: it must have this ETag. */
      ifMatch: z.optional(etag()),
      body: z.optional(textField('a string')),
      encoding: z.optional(oneOf(['utf8', 'base64'])),
      /** The uploadId of a staged upload, instead of a body. */
      source: z.optional(
        textField('a string').check(
          z.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'must be the uploadId of a staged upload'),
        ),
      ),
      /** The ETag in S3's answer to the upload. The upload is committed only if it still has this ETag. */
      sourceEtag: z.optional(etag()),
      contentType: z.optional(storedHeader('a content type')),
      cacheControl: z.optional(storedHeader('a Cache-Control header')),
      contentDisposition: z.optional(storedHeader('a Content-Disposition header')),
      contentEncoding: z.optional(contentEncoding()),
      metadata: z.optional(metadata()),
      /** Identifies one commit. A repeat receives the outcome of that commit. */
      commitId: z.optional(commitId()),
      fence: z.optional(fence()),
      waitSeconds: waitSeconds(),
    })
    .check(
      z.check((ctx) => {
        for (const [field, message] of combinationFaults(ctx.value))
          ctx.issues.push({ code: 'custom', path: [field], message, input: ctx.value });
      }),
    );
export type CommitInput = z.infer<ReturnType<typeof commitInput>>;

export const resetFenceInput = () =>
  z
    .strictObject({
      path: path(),
      /** The ETag that the object must have. */
      ifMatch: etag(),
      /** The fence that the object must have. */
      expectedFence: fence(name(256)),
      /** The fence that later commits need. Null removes the fence. */
      fence: z.nullable(fence()),
      commitId: z.optional(commitId()),
      waitSeconds: waitSeconds(),
    })
    .check(
      z.check((ctx) => {
        const { expectedFence: seen, fence: wanted } = ctx.value;
        if (seen.key !== wanted?.key || seen.token !== wanted.token) return;
        ctx.issues.push({ code: 'custom', path: ['fence'], message: 'must differ from expectedFence', input: wanted });
      }),
    );
export type ResetFenceInput = z.infer<ReturnType<typeof resetFenceInput>>;

export const uploadInput = () =>
  z.strictObject({
    contentType: z.optional(storedHeader('a content type')),
    sizeBytes: z.optional(whole(0, MAX_UPLOAD_BYTES)),
  });
export type UploadInput = z.infer<ReturnType<typeof uploadInput>>;

export const readPathInput = () => z.strictObject({ path: path() });
export type ReadPathInput = z.infer<ReturnType<typeof readPathInput>>;

export const inFlightInput = () =>
  z.strictObject({
    prefix: z.optional(name(1024)),
    limit: z.optional(limit()),
    cursor: z.optional(cursorText()),
  });
export type InFlightInput = z.infer<ReturnType<typeof inFlightInput>>;

export const COMMIT_NAME_FIELDS: NameFields = {
  stored: ['fence.key', 'expectedFence.key'],
  paths: ['path'],
  answered: ['fence.key'],
};

export const COMMIT_LIST_FIELDS: NameFields = { listed: { of: 'paths' } };
