import { median } from '../../bench/measurement.ts';
import { Holdfast } from '../../client/src/index.ts';
import { signed } from '../../client/src/sigv4.ts';
import { readOptions } from '../../local/options.ts';
import { serveLeases } from './service.ts';

const HELP = `npm run verify -- overhead: what withLease around an empty function takes, beside the same two calls by bare fetch
with the same signature, in turns. It fails where that is more than 10 % longer, or more than two requests.

  --rounds N   how many times (600)`;

const MOST = 1.1;
/** Taken in turns of so many, so that both meet the same load. */
const TURN = 10;

const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' };
const region = 'us-east-1';

async function main(): Promise<boolean> {
  const { values, number } = readOptions({
    rounds: { type: 'string', default: '600' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) {
    console.log(HELP);
    return true;
  }
  const rounds = number('rounds', { least: TURN }) ?? TURN;
  const service = await serveLeases();
  try {
    let requests = 0;
    const counting: typeof fetch = (url, init) => {
      requests++;
      return fetch(url, init);
    };
    const options = { endpoint: service.url, region, credentials: () => credentials, holder: 'x', fetch: counting };
    const holdfast = new Holdfast(options);
    const client = () => holdfast.withLease('client', () => {});
    const times = { bare: [] as number[], client: [] as number[] };
    for (let warm = 0; warm < 50; warm++) {
      await bare(service.url);
      await client();
    }
    requests = 0;
    for (let round = 0; round < rounds; round += TURN) {
      for (let at = 0; at < TURN; at++) times.bare.push(await timed(() => bare(service.url)));
      for (let at = 0; at < TURN; at++) times.client.push(await timed(client));
    }
    const [floor, ours] = [median(times.bare), median(times.client)];
    const each = requests / times.client.length;
    const ratio = ours / floor;
    console.log(
      `bare ${floor.toFixed(2)} ms, withLease ${ours.toFixed(2)} ms (medians of ${times.client.length}), ratio ${ratio.toFixed(3)}, ${each} requests`,
    );
    return ratio <= MOST && each === 2;
  } finally {
    await service.stop();
  }
}

async function bare(endpoint: string): Promise<void> {
  const { leaseId } = await post(endpoint, 'acquire', { key: 'bare', holder: 'x', requestId: crypto.randomUUID() });
  await post(endpoint, 'release', { key: 'bare', leaseId });
}

async function post(endpoint: string, call: string, payload: object): Promise<{ leaseId: string }> {
  const url = new URL(`${endpoint}/v1/leases/${call}`);
  const body = JSON.stringify(payload);
  const request = { method: 'POST', url, headers: { 'content-type': 'application/json' }, body };
  const headers = await signed(request, credentials, { region, service: 'execute-api', at: Date.now() });
  const response = await fetch(url, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`${call} answered ${response.status}`);
  return response.json() as Promise<{ leaseId: string }>;
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}

main().then(
  (passed) => {
    process.exitCode = passed ? 0 : 1;
  },
  (error: Error) => {
    console.error(`npm run verify -- overhead: ${error.message}`);
    process.exitCode = 2;
  },
);
