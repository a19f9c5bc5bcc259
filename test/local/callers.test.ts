import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { DynamoDBClient, ListTablesCommand, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { chromium } from 'playwright-core';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { startGatedDynamodb } from '../../local/dynamodb.ts';
import { startEventBus } from '../../local/event-bus.ts';
import type { BusEvent } from '../../local/events.ts';
import { startGate } from '../../local/gate.ts';
import { startGateway } from '../../local/gateway.ts';
import { listen } from '../../local/listen.ts';
import { CLOSED_TO_BROWSERS, freePort, portClosedToBrowsers, whyNotFree } from '../../local/ports.ts';
import { startS3 } from '../../local/s3.ts';
import { startSqs } from '../../local/sqs.ts';
import { startEndpoint } from '../../local/step-functions/endpoint.ts';
import { apiError } from '../../local/step-functions/errors.ts';
import { chromiumIn } from '../support/programs/browser.ts';
import { isFull } from '../support/time/rounds.ts';

const executablePath = chromiumIn();
const called: string[] = [];
const events: BusEvent[] = [];
const dynamodb = await startGatedDynamodb(await freePort());
const s3 = await startS3(await freePort());
const bus = await startEventBus((event) => void events.push(event));
const acquire = { method: 'POST', path: '/v1/leases/acquire', name: 'acquire', timeoutSeconds: 5 };
const handler = async () => {
  called.push('acquire');
  return { statusCode: 200, body: '{}' };
};
const gateway = await startGateway([{ ...acquire, handler }], 0);
const states = await startEndpoint(async () => {
  called.push('states');
  throw apiError('StateMachineDoesNotExist', 'there are none here');
}, 0);
const put = () => {
  called.push('sqs');
  return true;
};
const sqs = await startSqs({ put });
afterAll(() => Promise.all([dynamodb, s3, bus, gateway, states, sqs].map(({ stop }) => stop())));

interface Port {
  name: string;
  url: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

const amz = (target: string, version: string) => ({
  'x-amz-target': target,
  'content-type': `application/x-amz-json-${version}`,
  authorization:
    'AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=x',
  'x-amz-date': '20260101T000000Z',
});
const entry = { Source: 'a', DetailType: 'b', Detail: '{}' };

const PORTS: Port[] = [
  {
    name: 'the API',
    url: gateway.url,
    method: 'POST',
    path: '/v1/leases/acquire',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  },
  {
    name: 'DynamoDB',
    url: dynamodb.endpoint,
    method: 'POST',
    path: '/',
    headers: amz('DynamoDB_20120810.ListTables', '1.0'),
    body: '{}',
  },
  { name: 'S3', url: s3.endpoint, method: 'PUT', path: '/a-bucket', headers: {}, body: '' },
  {
    name: 'EventBridge',
    url: bus.endpoint,
    method: 'POST',
    path: '/',
    headers: amz('AWSEvents.PutEvents', '1.1'),
    body: JSON.stringify({ Entries: [entry] }),
  },
  {
    name: 'Step Functions',
    url: states.url,
    method: 'POST',
    path: '/',
    headers: amz('AWSStepFunctions.ListStateMachines', '1.0'),
    body: '{}',
  },
  {
    name: 'SQS',
    url: sqs.url,
    method: 'POST',
    path: '/',
    headers: amz('AmazonSQS.SendMessage', '1.0'),
    body: JSON.stringify({ QueueUrl: `${sqs.url}/queue`, MessageBody: '{}' }),
  },
];

/** Uses the http module, because `fetch` sets Host and Origin itself. */
function send({ url, method, path, headers, body }: Port, more: Record<string, string> = {}) {
  return new Promise<{ status: number; cors: string | undefined; body: string }>((resolve, reject) => {
    const sent = request(url + path, { method, headers: { ...headers, ...more } }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode ?? 0, cors: response.headers['access-control-allow-origin'], body: text });
    });
    sent.on('error', reject).end(body);
  });
}

describe.each(PORTS)('$name', (port) => {
  const number = new URL(port.url).port;
  const own = `127.0.0.1:${number}`;

  it.each([
    ['the page that a browser shows', { origin: 'http://evil.example' }],
    ['a page over https', { origin: 'https://evil.example' }],
    ['a page without an origin', { origin: 'null' }],
    ['a page of another port of this machine', { origin: 'http://localhost:5173' }],
    [
      'a page whose name resolves to this machine',
      { host: `evil.example:${number}`, origin: `http://evil.example:${number}` },
    ],
    ['the same page, where the browser sends no origin', { host: `evil.example:${number}` }],
    ['a name that only begins like this machine', { host: `127.0.0.1.evil.example:${number}` }],
    ['a name that only ends like this machine', { host: `evillocalhost:${number}` }],
    ['another port', { host: '127.0.0.1:1' }],
    ['no port', { host: 'localhost' }],
    ['a request across sites', { 'sec-fetch-site': 'cross-site' }],
    ['a request from another port of this machine', { 'sec-fetch-site': 'same-site' }],
  ])('a server of the local stack refuses %s', async (_, headers) => {
    const before = [called.length, events.length];
    const { status, cors, body } = await send(port, { host: own, ...headers });
    expect({ status, cors }).toEqual({ status: 403, cors: undefined });
    expect(JSON.parse(body)).toEqual({ message: expect.stringMatching(/machine|this server/) });
    expect([called.length, events.length]).toEqual(before);
  });

  it('a server of the local stack refuses the preflight request of browsers', async () => {
    const headers = { origin: 'http://evil.example', 'access-control-request-method': 'POST' };
    expect(await send({ ...port, method: 'OPTIONS', body: '' }, headers)).toMatchObject({
      status: 403,
      cors: undefined,
    });
  });

  it.each([
    ['127.0.0.1', {}],
    ['localhost', { host: `localhost:${number}` }],
    ['LOCALHOST', { host: `LOCALHOST:${number}` }],
    ['[::1]', { host: `[::1]:${number}` }],
    ['a page of its own', { origin: `http://${own}` }],
    ['what the user typed', { 'sec-fetch-site': 'none' }],
  ])('a server of the local stack answers callers on this machine: %s', async (_, headers) => {
    expect((await send(port, { host: own, ...headers })).status).not.toBe(403);
  });
});

describe.each(PORTS)('$name at a request that is not a call', (port) => {
  it.each(['not json', 'null', '{"Entries":[null]}', '{"QueueUrl":null}'])(
    'a server of the local stack refuses the body %s',
    async (body) => {
      const { status } = await send({ ...port, body });
      expect(status).toBeLessThan(500);
      expect((await send(port)).status).not.toBe(500);
    },
  );

  it('a server of the local stack survives a connection that closes in a body', async () => {
    const { url, method, path, headers } = port;
    const sent = request(url + path, { method, headers: { ...headers, 'content-length': 1000 } });
    const closed = new Promise((resolve) => sent.once('close', resolve));
    sent.on('error', () => {}); // it was closed by us
    sent.write('{', () => setImmediate(() => sent.destroy()));
    await closed;
    expect((await send(port)).status).not.toBe(500);
  });
});

describe('a server of the local stack', () => {
  /** What the server printed while `act` ran. */
  async function printedBy(act: () => Promise<void>): Promise<unknown[][]> {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    await act();
    const { calls } = printed.mock;
    printed.mockRestore();
    return calls;
  }

  it('a server of the local stack answers 500 if its handler fails, and continues', async () => {
    const faulty = await listen(async ({ url }) => {
      if (url === '/') throw new Error('not today');
    });
    const printed = await printedBy(async () => {
      const answer = await fetch(faulty.url, { signal: AbortSignal.timeout(10_000) });
      expect([answer.status, await answer.json()]).toEqual([500, { message: 'not today' }]);
    });
    expect(printed).toEqual([['GET /: Error: not today']]);
    await faulty.stop();
  });

  it('a server of the local stack closes a begun response if its handler fails', async () => {
    const faulty = await listen(async (_, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('half');
      throw new Error('not today');
    });
    const printed = await printedBy(() => expect(fetch(faulty.url).then((one) => one.text())).rejects.toThrow());
    expect(printed).toHaveLength(1);
    await faulty.stop();
  });
});

describe('the DynamoDB proxy', () => {
  const credentials = { accessKeyId: 'x', secretAccessKey: 'x' };

  it('the DynamoDB proxy passes on the calls of the SDK, and their errors', async () => {
    const client = new DynamoDBClient({ endpoint: dynamodb.endpoint, region: 'us-east-1', credentials });
    expect((await client.send(new ListTablesCommand({}))).TableNames).toEqual([]);
    const put = new PutItemCommand({ TableName: 'none', Item: { key: { S: 'x'.repeat(300_000) } } });
    await expect(client.send(put)).rejects.toThrow(/resource not found|ResourceNotFound|non-existent table/i);
  });

  it('the DynamoDB proxy answers a request without a Content-Type, such as object_store 0.12 sends', async () => {
    const port = PORTS.find(({ name }) => name === 'DynamoDB') as Port;
    const { 'content-type': _, ...headers } = port.headers;
    expect(await send({ ...port, headers })).toMatchObject({ status: 200, body: '{"TableNames":[]}' });
  });

  it('the DynamoDB proxy hides the emulator on a port closed to browsers', async () => {
    const taken = async () => {
      const why = await Promise.all(CLOSED_TO_BROWSERS.map((port) => whyNotFree(port)));
      return CLOSED_TO_BROWSERS.filter((_, at) => why[at] !== undefined);
    };
    const before = await taken();
    const { platform } = process;
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    const gate = await startGatedDynamodb(await freePort()).finally(() =>
      Object.defineProperty(process, 'platform', { value: platform }),
    );
    const more = (await taken()).filter((port) => !before.includes(port));
    await gate.stop();
    expect(more).not.toEqual([]);
  });

  it('the fetch standard blocks each port that the emulator may have', async () => {
    for (const port of CLOSED_TO_BROWSERS) {
      const failure = await fetch(`http://127.0.0.1:${port}`).catch((error: Error) => error);
      expect((failure as Error).cause, String(port)).toMatchObject({ message: 'bad port' });
    }
  });

  it.runIf(isFull && executablePath)('Chromium does not call any port that the emulator may have', async () => {
    const browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] });
    const page = await browser.newPage();
    for (const port of CLOSED_TO_BROWSERS)
      await expect(page.goto(`http://127.0.0.1:${port}/`), String(port)).rejects.toThrow('ERR_UNSAFE_PORT');
    await browser.close();
  });

  it.runIf(process.platform === 'linux')(
    'the DynamoDB proxy does not start the emulator if every such port is taken',
    async () => {
      const why = await Promise.all(CLOSED_TO_BROWSERS.map((port) => whyNotFree(port, '127.9.9.9')));
      const free = CLOSED_TO_BROWSERS.filter((_, at) => why[at] === undefined);
      const servers = free.map((port) => createServer().listen(port, '127.9.9.9'));
      await Promise.all(servers.map((server) => once(server, 'listening')));
      await expect(portClosedToBrowsers('127.9.9.9')).rejects.toThrow('a port that browsers do not call');
      for (const server of servers) server.close();
    },
  );

  it('the DynamoDB proxy breaks off a response that the emulator breaks off', async () => {
    const emulator = await listen((_, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('half', () => response.destroy());
    });
    const gate = await startGate({ endpoint: emulator.url, stop: emulator.stop }, 0);
    await expect(fetch(gate.endpoint).then((answer) => answer.text())).rejects.toThrow();
    await gate.stop();
  });

  it('the DynamoDB proxy fails with the emulator, and stops it at its end', async () => {
    const stopped: string[] = [];
    const nobody = {
      endpoint: `http://127.0.0.1:${await freePort()}`,
      stop: async () => void stopped.push('emulator'),
    };
    const gate = await startGate(nobody, 0);
    await expect(fetch(gate.endpoint)).rejects.toThrow('fetch failed');
    await gate.stop();
    expect(stopped).toEqual(['emulator']);
  });
});

describe('the event bus', () => {
  it('the event bus refuses an event in the name of AWS, as EventBridge does', async () => {
    events.length = 0;
    const forged = { ...entry, Source: 'aws.states', DetailType: 'Step Functions Execution Status Change' };
    const answer = await fetch(bus.endpoint, { method: 'POST', body: JSON.stringify({ Entries: [forged, entry] }) });
    expect(await answer.json()).toEqual({
      FailedEntryCount: 1,
      Entries: [
        { ErrorCode: 'NotAuthorizedForSourceException', ErrorMessage: 'Not authorized for the source.' },
        { EventId: expect.any(String) },
      ],
    });
    expect(events.map(({ source }) => source)).toEqual(['a']);
  });
});
