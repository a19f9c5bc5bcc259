/** As the AWS SDK's credential providers give them. */
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

const bytes = (text: string) => new TextEncoder().encode(text);

const hex = (buffer: ArrayBuffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');

type Bytes = ArrayBuffer | Uint8Array<ArrayBuffer>;

const hmac = async (key: Bytes, text: string): Promise<ArrayBuffer> => {
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return crypto.subtle.sign('HMAC', imported, bytes(text));
};

const sha256 = async (text: string) => hex(await crypto.subtle.digest('SHA-256', bytes(text)));

/** Percent-encodes all but the unreserved characters of RFC 3986. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * AWS Signature Version 4, for every service but S3. It signs all headers that are given, and adds `host` to them.
 * @returns the headers to send, without `host`, which every HTTP client sends by itself
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
  const canonical = Object.entries({ ...sent, host: url.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/\s+/g, ' ')])
    .sort(([left = ''], [right = '']) => (left < right ? -1 : 1));
  const names = canonical.map(([name]) => name).join(';');
  // The NUL keeps the order that of the names, and of the values where names are the same.
  const query = [...url.searchParams].map(([name, value]) => `${escaped(name)}\0${escaped(value)}`).sort();
  const request = [
    method,
    url.pathname.split('/').map(escaped).join('/'),
    query.join('&').replaceAll('\0', '='),
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
