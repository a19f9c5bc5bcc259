import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listen } from '../../../local/listen.ts';

interface Caller {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  region: string;
}

/**
 * Does what API Gateway does before the functions of a deployment with auth=iam. It answers 403 to a request whose Signature Version 4 is not
 * that of the caller, and passes every other request on to `url`.
 */
export async function startSignatureCheck(url: string, caller: Caller) {
  /** The paths of the requests that it passed on. */
  const passed: string[] = [];
  const listening = await listen(async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    if (!isSigned(request, body, caller)) {
      response.writeHead(403, { 'content-type': 'application/json' }).end('{"message":"Forbidden"}');
      return;
    }
    passed.push(request.url ?? '');
    const type = String(request.headers['content-type']);
    const answer = await fetch(url + request.url, { method: 'POST', headers: { 'content-type': type }, body });
    response.writeHead(answer.status, { 'content-type': String(answer.headers.get('content-type')) });
    response.end(await answer.text());
  }, 0);
  return { ...listening, passed };
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/execute-api\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;

function isSigned({ method, url = '', headers }: IncomingMessage, body: Buffer, caller: Caller): boolean {
  const [, accessKeyId, day = '', region = '', names = '', signature] =
    AUTHORIZATION.exec(headers.authorization ?? '') ?? [];
  const date = String(headers['x-amz-date']);
  const signedNames = names.split(';');
  const isComplete = ['host', 'x-amz-date', 'x-amz-security-token'].every((name) => signedNames.includes(name));
  if (accessKeyId !== caller.accessKeyId || region !== caller.region || !date.startsWith(day) || !isComplete)
    return false;
  if (headers['x-amz-security-token'] !== caller.sessionToken) return false;
  const signedHeaders = signedNames.map((name) => `${name}:${String(headers[name]).trim()}\n`).join('');
  const canonical = [method, url, '', signedHeaders, names, sha256(body)].join('\n');
  const scope = `${day}/${region}/execute-api/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n');
  const key = ['execute-api', 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${caller.secretAccessKey}`, day), region));
  return hmac(key, toSign).toString('hex') === signature;
}

/** Does what S3 does with a presigned URL, and the emulator does not: whether it was signed for a PUT with these headers. */
export function isPresignedFor(url: string, headers: Record<string, string>, secretAccessKey: string): boolean {
  const { host, pathname, searchParams } = new URL(url);
  const parameter = (name: string) => searchParams.get(`X-Amz-${name}`) ?? '';
  const query = [...searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map((pair) => pair.map(encodeURIComponent).join('='))
    .sort()
    .join('&');
  const given: Record<string, string> = { ...headers, host };
  const names = parameter('SignedHeaders');
  const signedHeaders = names.split(';').map((name) => `${name}:${given[name]}\n`);
  const canonical = ['PUT', pathname, query, signedHeaders.join(''), names, 'UNSIGNED-PAYLOAD'].join('\n');
  const scope = parameter('Credential').split('/').slice(1);
  const toSign = ['AWS4-HMAC-SHA256', parameter('Date'), scope.join('/'), sha256(canonical)].join('\n');
  const key = scope.reduce<Buffer | string>(hmac, `AWS4${secretAccessKey}`);
  return hmac(key, toSign).toString('hex') === parameter('Signature');
}
