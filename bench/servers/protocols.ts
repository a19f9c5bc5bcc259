/** Splits the bytes of a connection into messages, and matches replies with requests. */
export interface Protocol {
  /** @returns the length of the first message in `bytes`, or undefined if it is not complete. `nth` counts from 0 */
  requestLength(bytes: Buffer, nth: number): number | undefined;
  replyLength(bytes: Buffer, nth: number): number | undefined;
  /** @returns true if a request takes the lock of a key */
  takes(request: Buffer, key: string): boolean;
  /** @returns true if a reply grants the lock that `request` asked for. `requests` counts the complete requests before the reply. */
  grants(reply: Numbered, asked: { request: Numbered; requests: number }): boolean;
}

export interface Numbered {
  bytes: Buffer;
  /** The number of the message among those of the same direction, from 0. */
  nth: number;
}

const whole = (bytes: Buffer, length: number) => (bytes.length < length ? undefined : length);

const END_OF_HEAD = '\r\n\r\n';

/** HTTP/1.1 without pipelining, as the AWS SDK uses it: all bytes that arrive after a request belong to its reply. */
const http1: Protocol = {
  requestLength: (bytes) => {
    const head = bytes.indexOf(END_OF_HEAD);
    if (head < 0) return undefined;
    const [, length = '0'] = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString('latin1', 0, head)) ?? [];
    return whole(bytes, head + END_OF_HEAD.length + Number(length));
  },
  replyLength: (bytes) => bytes.length,
  takes: (request, key) => /\.(Put|Update)Item/.test(request.toString('latin1')) && request.includes(key),
  grants: ({ bytes }, { request, requests }) =>
    request.nth === requests - 1 && bytes.toString('latin1').startsWith('HTTP/1.1 200'),
};

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const FRAME_HEADER_BYTES = 9;
const HTTP2_FRAMES = { data: 0, headers: 1 };
const frameType = (frame: Buffer) => frame[3];
const streamOf = (frame: Buffer) => frame.readUInt32BE(5);
const http2Length = (bytes: Buffer) =>
  bytes.length < FRAME_HEADER_BYTES ? undefined : whole(bytes, FRAME_HEADER_BYTES + bytes.readUIntBE(0, 3));

/**
 * gRPC over HTTP/2. The request is the first message that contains the name of the key: the transaction that puts the key of the lock. The call that makes
 * the session does not contain it. The reply arrives on the same stream, so a keepalive or a watch is never taken for the reply.
 */
const etcd: Protocol = {
  requestLength: (bytes, nth) => (nth === 0 ? whole(bytes, PREFACE.length) : http2Length(bytes)),
  replyLength: http2Length,
  takes: (frame, key) => frameType(frame) === HTTP2_FRAMES.data && frame.includes(key),
  grants: ({ bytes }, { request }) =>
    (frameType(bytes) === HTTP2_FRAMES.headers || frameType(bytes) === HTTP2_FRAMES.data) &&
    streamOf(bytes) === streamOf(request.bytes),
};

/** @returns the position after the RESP value that begins at `at`, or undefined if the value is not complete */
function respEnd(bytes: Buffer, at: number): number | undefined {
  const line = bytes.indexOf('\r\n', at);
  if (line < 0) return undefined;
  const after = line + 2;
  const type = String.fromCharCode(bytes[at] ?? 0);
  const count = Number(bytes.toString('latin1', at + 1, line));
  if ('$=!'.includes(type)) return count < 0 ? after : whole(bytes, after + count + 2);
  if (!'*~>%'.includes(type)) return after;
  let end: number | undefined = after;
  for (let item = 0; item < (type === '%' ? 2 : 1) * count && end !== undefined; item++) end = respEnd(bytes, end);
  return end;
}

/** Redis replies in the order of the requests (RESP). Both libraries take a lock with a SET or a script, which is their first request with the key. */
const redis: Protocol = {
  requestLength: (bytes) => respEnd(bytes, 0),
  replyLength: (bytes) => respEnd(bytes, 0),
  takes: (request, key) => request.includes(key),
  grants: ({ bytes, nth }, { request }) => nth === request.nth && !/^(-|_|\$-1)/.test(bytes.toString('latin1')),
};

const ZOOKEEPER = { create: 1, create2: 15, ephemeralSequential: 3 };
const zookeeperLength = (bytes: Buffer) => (bytes.length < 4 ? undefined : whole(bytes, 4 + bytes.readInt32BE(0)));
const xidOf = (frame: Buffer) => frame.readInt32BE(4);

/** ZooKeeper sends frames with a length, an id (xid) and, in a request, an operation. The first frame of each direction makes the session, and has no id. */
const zookeeper: Protocol = {
  requestLength: zookeeperLength,
  replyLength: zookeeperLength,
  takes: (frame, key) =>
    [ZOOKEEPER.create, ZOOKEEPER.create2].includes(frame.readInt32BE(8)) &&
    frame.readInt32BE(frame.length - 4) === ZOOKEEPER.ephemeralSequential &&
    frame.includes(key),
  grants: ({ bytes, nth }, { request }) =>
    nth > 0 && xidOf(bytes) === xidOf(request.bytes) && bytes.readInt32BE(16) === 0,
};

/** The protocol of each kind of server. */
export const PROTOCOLS = { dynamodb: http1, etcd, redis, zookeeper };
