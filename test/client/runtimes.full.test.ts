import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { delimiter, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { build, type Plugin } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../local/listen.ts';
import { dynamodbEndpoint } from '../support/emulators/endpoint.ts';
import { startLambdaApi } from '../support/emulators/lambda-api.ts';
import { chromiumIn } from '../support/programs/browser.ts';
import { folderWithClient } from '../support/programs/client-package.ts';
import { startApi } from '../support/stack/api.ts';
import { allWorlds } from '../support/worlds/client-worlds.ts';

const run = promisify(execFile);

/** `npm run verify -- runtimes` installs what this machine lacks, and names the folders here. */
const folders = [...(process.env.CLIENT_RUNTIMES ?? '').split(delimiter), ...(process.env.PATH ?? '').split(delimiter)];

/** The programs with these names on the path, one for each version. */
async function installed(): Promise<[name: string, command: string[]][]> {
  const found = new Map<string, string[]>([[`node ${process.version}`, [process.execPath]]]);
  for (const folder of folders)
    for (const [name, ...options] of [['node'], ['bun'], ['deno', 'run', '--allow-all']] as const) {
      const program = join(folder, name);
      if (!folder || !existsSync(program)) continue;
      const [version = ''] = (await run(program, ['--version'])).stdout.split('\n');
      const title = version.startsWith(name) ? version : `${name} ${version}`;
      if (!found.has(title)) found.set(title, [program, ...options]);
    }
  return [...found];
}

const runtimes = await installed();
for (const name of ['node v20', 'node v22', 'node v24', 'bun', 'deno'])
  if (!runtimes.some(([title]) => title.startsWith(name)))
    console.log(`skipped: there is no ${name} on this machine; npm run verify -- runtimes brings it`);

let world: Awaited<ReturnType<typeof allWorlds>>;
let api: Awaited<ReturnType<typeof startApi>>;
let lambda: Awaited<ReturnType<typeof startLambdaApi>>;
let client: Awaited<ReturnType<typeof folderWithClient>>;

beforeAll(async () => {
  client = await folderWithClient();
  world = await allWorlds();
  api = await startApi(world.handlers);
  lambda = await startLambdaApi(world.handlers, 'test-');
});
afterAll(async () => {
  await Promise.all([api.stop(), lambda.stop()]);
  await client.remove();
});

/** The build that browsers load, in place of the one that its conditions name. */
const small: Plugin = {
  name: 'small',
  resolveId: (id) =>
    id === 'holdfast-client' ? join(client.folder, 'node_modules/holdfast-client/dist/index.js') : undefined,
};

/** The scenario as one module for a runtime, which has the package as it is built and nothing of this repository. */
async function bundled(main: string, platform: 'node' | 'browser', plugins: Plugin[] = []): Promise<string> {
  const source = join(client.folder, `${platform}.ts`);
  await writeFile(source, main.replaceAll('SCENARIO', join(import.meta.dirname, 'scenario.ts')));
  const outfile = join(client.folder, `${platform}.mjs`);
  await build({
    input: source,
    platform,
    resolve: { modules: ['node_modules', join(process.cwd(), 'node_modules')] },
    transform: { target: 'es2022' },
    logLevel: 'warn',
    checks: { ineffectiveDynamicImport: false },
    plugins,
    output: { file: outfile, format: 'esm', codeSplitting: false },
  });
  return outfile;
}

const NODE_MAIN = `
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { Holdfast, isHoldfastError } from 'holdfast-client';
import { directTransport } from 'holdfast-client/direct';
import { lambdaTransport } from 'holdfast-client/lambda';
import { scenario } from 'SCENARIO';

const { url, lambdaUrl, dynamodbUrl, leasesTable, waitersTable } = JSON.parse(process.env.SETTINGS);
const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' };
const common = { region: 'us-east-1', credentials };
const ways = {
  http: { endpoint: url, region: 'us-east-1', credentials: () => credentials },
  lambda: { transport: lambdaTransport({ client: new LambdaClient({ ...common, endpoint: lambdaUrl }), functions: 'test-' }) },
  direct: { transport: directTransport({ client: new DynamoDBClient({ ...common, endpoint: dynamodbUrl }), leasesTable, waitersTable }) },
};
const party = (way, holder) => new Holdfast({ ...way, holder });
const results = await Promise.all(
  Object.entries(ways).map(async ([name, way]) => {
    const parties = { holdfast: party(way, 'scenario'), other: party(way, 'other'), isHoldfastError };
    const done = await scenario({ ...parties, everything: name === 'http' });
    return [name, done.length];
  }),
);
console.log(JSON.stringify(Object.fromEntries(results)));
`;

describe('the built package', () => {
  const play = async ([program = '', ...options]: string[], plugins: Plugin[] = []) => {
    const { table: leasesTable, dependencies } = world.leases;
    const SETTINGS = JSON.stringify({
      ...{ url: api.url, lambdaUrl: lambda.url, dynamodbUrl: dynamodbEndpoint() },
      ...{ leasesTable, waitersTable: dependencies.waitersTable },
    });
    const main = await bundled(NODE_MAIN, 'node', plugins);
    // If the client kept the process alive, the test would hang without this limit.
    const { stdout } = await run(program, [...options, main], {
      env: { ...process.env, SETTINGS },
      timeout: 110_000,
    });
    expect(JSON.parse(stdout)).toEqual({ http: 17, lambda: 12, direct: 12 });
  };

  it.each(runtimes)('the built package works in %s', { timeout: 120_000 }, (_, command) => play(command));

  it('the built package works in Node, with the build that browsers load', { timeout: 120_000 }, () =>
    play([process.execPath], [small]),
  );
});

const BROWSER_MAIN = `
import { Holdfast, isHoldfastError } from 'holdfast-client';
import { scenario } from 'SCENARIO';

window.play = async (token) => {
  const party = (holder) => new Holdfast({ endpoint: location.origin, token: async () => token, holder });
  const parties = { holdfast: party('scenario'), other: party('other'), isHoldfastError };
  return scenario({ ...parties, everything: false });
};
window.refused = (token) =>
  new Holdfast({ endpoint: location.origin, token, holder: 'x' }).readLease('a').catch(({ code, status }) => [code, status]);
`;

const base64url = (text: string) => Buffer.from(text).toString('base64url');
const SECRET = 'of this test';
const signatureOf = (text: string) => createHmac('sha256', SECRET).update(text).digest('base64url');

function jwt(subject: string): string {
  const text = `${base64url('{"alg":"HS256"}')}.${base64url(JSON.stringify({ sub: subject }))}`;
  return `${text}.${signatureOf(text)}`;
}

/** The page's own origin: it has the page, and the API behind an authorizer. */
async function handle(script: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url = '', headers } = request;
  if (!url.startsWith('/v1/')) {
    response.writeHead(200, { 'content-type': url === '/main.mjs' ? 'text/javascript' : 'text/html' });
    response.end(url === '/main.mjs' ? script : '<!doctype html><script type="module" src="/main.mjs"></script>');
    return;
  }
  const [, text = '', signature] = /^Bearer (.+)\.([\w-]+)$/.exec(headers.authorization ?? '') ?? [];
  if (signature !== signatureOf(text)) {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end('{"message":"Unauthorized"}');
    return;
  }
  const body = await buffer(request);
  const answer = await fetch(api.url + url, {
    method,
    headers: { 'content-type': headers['content-type'] ?? '' },
    ...(method === 'POST' && { body }),
  });
  response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
  response.end(await answer.text());
}

const browser = chromiumIn(folders);

it.runIf(browser)('the built package works in Chromium, with a JWT', { timeout: 120_000 }, async () => {
  const script = await readFile(await bundled(BROWSER_MAIN, 'browser'), 'utf8');
  const site = await listen((request, response) => {
    handle(script, request, response).catch((error) => response.destroy(error));
  });
  const instance = await chromium.launch({ executablePath: browser ?? '', args: ['--no-sandbox'] });
  try {
    const page = await instance.newPage();
    await page.goto(site.url);
    await page.waitForFunction('window.play');
    expect(await page.evaluate(`window.play(${JSON.stringify(jwt('me'))})`)).toHaveLength(12);
    expect(await page.evaluate(`window.refused('${jwt('me')}x')`)).toEqual(['Refused', 401]);
  } finally {
    await instance.close();
    await site.stop();
  }
});
