import { escaped } from './query.ts';

/** AWS credentials, as the credential providers of the AWS SDK return them. */
export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

interface Signable {
  method: string;
  url: URL;
  headers: Record<string, string>;
  body: string;
}

interface Scope {
  region: string;
  service: string;
  /** Epoch milliseconds. */
  at: number;
}

type Bytes = ArrayBuffer | Uint8Array<ArrayBuffer>;

const bytes = (text: string) => new TextEncoder().encode(text);

const hex = (buffer: ArrayBuffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');

const sha256 = async (text: string) => hex(await crypto.subtle.digest('SHA-256', bytes(text)));

async function hmac(key: Bytes, text: string): Promise<ArrayBuffer> {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return crypto.subtle.sign('HMAC', imported, bytes(text));
}

/**
 * Signs a request by AWS Signature Version 4, for every service except S3. The signature covers all given headers and `host`. Header names must be in
 * lower case, header values must not contain superfluous blanks, and the query must be as `queryOf` writes it.
 * @returns the headers to send, without `host`, which every HTTP client adds by itself
 */
export async function signed(
  { method, url, headers, body }: Signable,
  { accessKeyId, secretAccessKey, sessionToken }: Credentials,
  { region, service, at }: Scope,
): Promise<Record<string, string>> {
  const date = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
  const sent: Record<string, string> = {
    ...headers,
    'x-amz-date': date,
    ...(sessionToken && { 'x-amz-security-token': sessionToken }),
  };
  const canonical = Object.entries({ ...sent, host: url.host }).sort();
  const names = canonical.map(([name]) => name).join(';');
  const request = [
    method,
    escaped(url.pathname).replaceAll('%2F', '/'),
    url.search.slice(1),
    ...canonical.map((header) => header.join(':')),
    '',
    names,
    await sha256(body),
  ].join('\n');

  const scope = [date.slice(0, 8), region, service, 'aws4_request'];
  let key: Bytes = bytes(`AWS4${secretAccessKey}`);
  for (const part of scope) key = await hmac(key, part);
  const toSign = ['AWS4-HMAC-SHA256', date, scope.join('/'), await sha256(request)].join('\n');
  const signature = hex(await hmac(key, toSign));
  const credential = [accessKeyId, ...scope].join('/');
  return {
    ...sent,
    authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`,
  };
}
