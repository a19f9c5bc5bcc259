import type { buildApp } from 'fauxqs';

type App = ReturnType<typeof buildApp>;

/** The part of the emulator's store that the conditions need. */
export interface ObjectStore {
  buckets: Map<string, Map<string, { etag: string }>>;
}

/** The part of a request for an object that the conditions need. */
interface ObjectRequest {
  method: string;
  bucket: string;
  key: string;
  query: Record<string, string | undefined>;
  headers: Record<string, string | string[] | undefined>;
}

interface Refusal {
  status: number;
  code: string;
  message: string;
}

const PRECONDITION_FAILED = {
  status: 412,
  code: 'PreconditionFailed',
  message: 'At least one of the pre-conditions you specified did not hold',
};
const NO_SUCH_KEY = { status: 404, code: 'NoSuchKey', message: 'The specified key does not exist.' };
const CONFLICT = {
  status: 409,
  code: 'ConditionalRequestConflict',
  message: 'The conditional request cannot succeed due to a conflicting operation against this resource.',
};
const EXPIRED = { status: 403, code: 'AccessDenied', message: 'Request has expired' };

/**
 * Makes PUT, COPY, CompleteMultipartUpload and DELETE respect their conditions as S3 does. The handlers of the emulator write without yielding, and these
 * hooks call back without yielding, so that no other request comes between the check and the write.
 */
export function addConditions(app: App, store: ObjectStore): void {
  /** Conditional writes whose body has not arrived yet, by object, and whether that object was deleted before it arrived. */
  const underWay = new Map<object, { object: string; deleted: boolean }>();

  app.addHook('onRequest', (request, _reply, done) => {
    const parts = objectRequest(request);
    if (isWrite(parts) && isConditional(parts)) underWay.set(request, { object: objectName(parts), deleted: false });
    done();
  });
  app.addHook('preHandler', (request, reply, done) => {
    const parts = objectRequest(request);
    const refusal = parts.key === '' ? undefined : refusalOf(store, parts, underWay.get(request)?.deleted ?? false);
    if (refusal) {
      reply.code(refusal.status).type('application/xml').send(xml(refusal));
      return;
    }
    if (parts.method === 'DELETE' && !parts.query.uploadId && exists(store, parts))
      for (const write of underWay.values()) if (write.object === objectName(parts)) write.deleted = true;
    done();
  });
  app.addHook('onResponse', (request, _reply, done) => {
    underWay.delete(request);
    done();
  });
  app.addHook('onRequestAbort', (request, done) => {
    underWay.delete(request);
    done();
  });
}

function objectRequest(request: { method: string; params: unknown; query: unknown; headers: object }): ObjectRequest {
  const { bucket = '', '*': key = '' } = (request.params ?? {}) as Record<string, string>;
  const query = (request.query ?? {}) as ObjectRequest['query'];
  return { method: request.method, bucket, key, query, headers: request.headers as ObjectRequest['headers'] };
}

const objectName = ({ bucket, key }: ObjectRequest) => `${bucket}/${key}`;

const exists = (store: ObjectStore, { bucket, key }: ObjectRequest) => store.buckets.get(bucket)?.has(key) ?? false;

function isWrite({ method, query }: ObjectRequest): boolean {
  return (method === 'PUT' && !query.partNumber) || (method === 'POST' && query.uploadId !== undefined);
}

const isConditional = ({ headers }: ObjectRequest) =>
  headers['if-match'] !== undefined || headers['if-none-match'] !== undefined;

function refusalOf(store: ObjectStore, request: ObjectRequest, deletedMeanwhile: boolean): Refusal | undefined {
  if (isExpired(request.query, Date.now())) return EXPIRED;
  const objects = store.buckets.get(request.bucket);
  if (!objects) return undefined; // the emulator itself refuses the request
  return sourceRefusal(store, request) ?? targetRefusal(objects.get(request.key)?.etag, request, deletedMeanwhile);
}

/** True if a presigned URL has expired. Its signature is not checked. */
function isExpired(query: ObjectRequest['query'], now: number): boolean {
  const date = query['X-Amz-Date']?.match(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/)?.slice(1);
  if (!date) return false;
  const [year = 0, month = 1, ...rest] = date.map(Number);
  const signedAt = Date.UTC(year, month - 1, ...(rest as [number, number, number, number]));
  return now > signedAt + Number(query['X-Amz-Expires'] ?? 0) * 1000;
}

function sourceRefusal(store: ObjectStore, { headers }: ObjectRequest): Refusal | undefined {
  const source = headers['x-amz-copy-source'];
  if (typeof source !== 'string') return undefined;
  const [bucket = '', ...key] = decodeURIComponent(source).replace(/^\//, '').split('/');
  const etag = store.buckets.get(bucket)?.get(key.join('/'))?.etag;
  if (etag === undefined) return undefined; // the emulator itself refuses the request
  const ifMatch = headers['x-amz-copy-source-if-match'];
  const ifNoneMatch = headers['x-amz-copy-source-if-none-match'];
  if (ifMatch !== undefined && !matches(ifMatch, etag)) return PRECONDITION_FAILED;
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, etag)) return PRECONDITION_FAILED;
  return undefined;
}

function targetRefusal(etag: string | undefined, request: ObjectRequest, deletedMeanwhile: boolean) {
  if (!isWrite(request) && request.method !== 'DELETE') return undefined;
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers;
  if (ifMatch !== undefined) {
    if (etag === undefined) return NO_SUCH_KEY;
    if (!matches(ifMatch, etag)) return PRECONDITION_FAILED;
  }
  if (ifNoneMatch !== undefined && etag !== undefined) return PRECONDITION_FAILED;
  return deletedMeanwhile ? CONFLICT : undefined;
}

function matches(condition: string | string[], etag: string): boolean {
  return condition === '*' || String(condition).replaceAll('"', '') === etag.replaceAll('"', '');
}

const xml = ({ code, message }: Refusal) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`;
