import { LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { directTransport } from '../../clients/typescript/src/direct.ts';
import { Holdfast, type HoldfastOptions, isHoldfastError } from '../../clients/typescript/src/index.ts';
import { lambdaTransport } from '../../clients/typescript/src/lambda.ts';
import { testClient } from '../support/emulators/aws.ts';
import { startLambdaApi } from '../support/emulators/lambda-api.ts';
import { startApi } from '../support/stack/api.ts';
import { aFew, isFull } from '../support/time/rounds.ts';
import { allWorlds } from '../support/worlds/client-worlds.ts';
import { scenario } from './scenario.ts';

let api: Awaited<ReturnType<typeof startApi>>;
let world: Awaited<ReturnType<typeof allWorlds>>;

/** The scenarios mostly wait, so they run at once. */
beforeAll(async () => {
  world = await allWorlds();
  api = await startApi(world.handlers);
});
afterAll(() => api.stop());

/** The ways differ only in their transports. */
const played = aFew(1, ['namespace', 'jwt', 'invoke']);

type Way = HoldfastOptions extends infer Options ? (Options extends unknown ? Omit<Options, 'holder'> : never) : never;

const run = (way: Way, everything: boolean) => {
  const party = (holder: string) => new Holdfast({ ...way, holder } as HoldfastOptions);
  const { namespace } = way;
  const parties = { holdfast: party('scenario'), other: party('other'), ...(namespace !== undefined && { namespace }) };
  return scenario({ ...parties, isHoldfastError, everything });
};

it.concurrent('the client plays the scenario over HTTP, signed', async () => {
  const credentials = async () => ({ accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'token' });
  expect((await run({ endpoint: api.url, region: 'eu-west-1', credentials }, true)).length).toBe(17);
});

it.runIf(played.includes('namespace')).concurrent(
  'the client plays the scenario over HTTP, in a namespace',
  async () => {
    // The scenario makes a report, and a deployment refuses a second one at the same time.
    const own = await startApi((await allWorlds()).handlers);
    try {
      expect((await run({ endpoint: own.url, namespace: 'team-a' }, isFull)).length).toBe(isFull ? 17 : 12);
    } finally {
      await own.stop();
    }
  },
);

it.runIf(played.includes('jwt')).concurrent('the client plays the scenario over HTTP, with a JWT', async () => {
  const seen: unknown[] = [];
  const watching: typeof fetch = (url, init) => {
    if (String(url).startsWith(api.url)) seen.push(new Headers(init?.headers).get('authorization'));
    return fetch(url, init);
  };
  let asked = 0;
  const token = () => `jwt-${++asked}`;
  expect((await run({ endpoint: `${api.url}/`, token, fetch: watching }, false)).length).toBe(12);
  expect(seen.length).toBeGreaterThan(20);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.every((value) => /^Bearer jwt-\d+$/.test(String(value)))).toBe(true);
});

it.runIf(played.includes('invoke')).concurrent('the client plays the scenario by lambda:Invoke', async () => {
  // The scenario makes a report, and a deployment refuses a second one at the same time.
  const lambda = await startLambdaApi((await allWorlds()).handlers, 'holdfast-test-');
  try {
    const client = new LambdaClient({ endpoint: lambda.url });
    const transport = lambdaTransport({ client, functions: 'holdfast-test-' });
    expect((await run({ transport }, isFull)).length).toBe(isFull ? 17 : 12);
    const none = new Holdfast({ transport: lambdaTransport({ client, functions: () => 'none' }), holder: 'x' });
    await expect(none.readLease('a')).rejects.toMatchObject({ code: 'Refused', status: 404 });
  } finally {
    await lambda.stop();
  }
});

it.concurrent('the client plays the scenario in the same process, on its own DynamoDB client', async () => {
  const { table, dependencies } = world.leases;
  const transport = directTransport({
    client: testClient(),
    leasesTable: table,
    waitersTable: dependencies.waitersTable,
  });
  expect((await run({ transport }, false)).length).toBe(12);
  const direct = new Holdfast({ transport, holder: 'x' });
  await expect(direct.readName('a')).rejects.toMatchObject({ code: 'Refused' });
  await expect(direct.park({ key: 'a', taskToken: 'b' })).rejects.toMatchObject({ code: 'Refused' });
});

it.concurrent('the client asks for the grace of its execution over HTTP and in process', async () => {
  const { table, dependencies, rawItem } = world.leases;
  const { waitersTable } = dependencies;
  const direct = directTransport({ client: testClient(), leasesTable: table, waitersTable });
  const execution = 'arn:aws:states:us-east-1:000000000000:execution:machine:run';
  for (const [name, way] of Object.entries({ http: { endpoint: api.url }, direct: { transport: direct } })) {
    const key = `graceful ${name}`;
    const lease = await new Holdfast({ ...way, holder: 'x' }).acquire(key, { execution, graceSeconds: 30 });
    expect(await rawItem(key)).toMatchObject({ execution: { S: execution }, h: { M: { n: { N: '30000' } } } });
    await lease.release();
  }
});
