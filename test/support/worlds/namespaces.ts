import { request as httpRequest } from 'node:http';
import { readHealth } from '../../../functions/contract/health.ts';
import { readContract } from '../../../functions/contract/read.ts';
import { whoami } from '../../../functions/contract/whoami.ts';
import { PARAMETERS } from '../../../infrastructure/parameters.ts';
import type { Authorizer } from '../../../local/authorizer.ts';
import type { LambdaHandler } from '../../../local/lambda.ts';
import { startApi } from '../stack/api.ts';
import { ManualClock } from '../time/clock.ts';
import { commitWorld } from './commits.ts';
import { expiryWorld, newLocations } from './expiry.ts';
import { lineWorld } from './line.ts';
import { nameserviceWorld } from './nameservice.ts';
import { onceHandlers } from './once.ts';
import { rateHandlers } from './rates.ts';

export interface Answered {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the answer of any route
  body: any;
}

/** The scopes of a deployment that sets no others. */
const SCOPES = Object.fromEntries(
  Object.entries(PARAMETERS).flatMap(([name, { default: value }]) =>
    name.endsWith('Scope') ? [[name, `${value}`]] : [],
  ),
);

/** All functions behind one API, over the same tables and bucket, and a clock to move. */
export async function namespaceWorld(authorizer?: Authorizer) {
  const locations = await newLocations();
  const clock = new ManualClock();
  const { leasesTable, waitersTable, commitsTable, nameserviceTable, bucket } = locations;
  const leases = await lineWorld({ table: leasesTable, waitersTable, clock });
  const commits = await commitWorld({ table: commitsTable, bucket, clock });
  const names = await nameserviceWorld({ table: nameserviceTable, clock });
  const expiry = await expiryWorld({ locations, clock });
  const handlers: Record<string, LambdaHandler> = {
    ...leases.handlers,
    ...commits.handlers,
    ...names.handlers,
    ...expiry.handlers(),
    ...onceHandlers(leases.dependencies),
    ...rateHandlers(leases.dependencies),
    readContract: readContract(),
    readHealth: readHealth(),
    whoami: whoami(SCOPES),
  };
  const api = await startApi(handlers, authorizer ? { authorizer } : {});

  /** Sends by the http module, because fetch would correct a path before it sends it. */
  const send = (method: string, path: string, body?: string, token?: string): Promise<Answered> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(api.url);
      const headers = {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const sent = httpRequest({ hostname, port, method, path, headers }, async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
      });
      sent.on('error', reject).end(body);
    });

  return {
    ...{ clock, locations, leases, commits, names, expiry, handlers, send },
    /** The calls of one namespace, or of the whole deployment: `post('leases/acquire', { ... })`. */
    of: (namespace?: string) => {
      const base = namespace === undefined ? '/v1/' : `/v1/ns/${namespace}/`;
      return {
        post: (route: string, body: object) => send('POST', base + route, JSON.stringify(body)),
        get: (route: string, query: Record<string, string> = {}) => {
          const search = new URLSearchParams(query).toString();
          return send('GET', `${base}${route}${search && `?${search}`}`);
        },
      };
    },
    stop: async () => {
      await api.stop();
      await leases.steps.stop();
    },
  };
}
