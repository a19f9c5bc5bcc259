import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readService } from '../../infrastructure/read.ts';
import { createTables, startDynamodb } from '../../local/dynamodb.ts';
import { startGateway } from '../../local/gateway.ts';
import { freePort } from '../../local/ports.ts';

const NAMES = ['acquire', 'heartbeat', 'release', 'withdraw', 'readLeases'];

/** The functions of leases behind HTTP, over an emulator of their own. `stop` must be called. */
export async function serveLeases() {
  const { tables, functions, environment } = await readService('test');
  const sdk = { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };
  Object.assign(process.env, environment, sdk);
  const emulator = await startDynamodb(await freePort());
  await createTables(emulator.endpoint, tables);
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
    LOG_LEVEL: 'SILENT',
    METRICS_NAMESPACE: '',
  });
  const served = functions.filter(({ name }) => NAMES.includes(name));
  const routes = await Promise.all(
    served.map(async ({ name, source, timeoutSeconds, routes }) => {
      // Functions read their settings when they are loaded.
      const { handler } = await import(pathToFileURL(resolve(source)).href);
      return routes.map((route) => ({ ...route, name, timeoutSeconds, handler }));
    }),
  );
  const gateway = await startGateway(routes.flat(), 0);
  return {
    url: gateway.url,
    store: { endpoint: emulator.endpoint, table: String(process.env.LEASES_TABLE) },
    stop: async () => {
      await gateway.stop();
      await emulator.stop();
    },
  };
}
