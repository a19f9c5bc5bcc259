import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { directTransport } from '../../clients/typescript/src/direct.ts';
import { Holdfast } from '../../clients/typescript/src/index.ts';
import { serve } from './scenarios.ts';

/** The client of Holdfast with heartbeats and its own DynamoDB client, set up as in its documentation. */
const client = new DynamoDBClient({ requestHandler: { requestTimeout: 2000, throwOnRequestTimeout: true } });
const transport = directTransport({
  client,
  leasesTable: process.env.LEASES_TABLE ?? '',
  waitersTable: process.env.WAITERS_TABLE ?? '',
});
const holdfast = new Holdfast({ transport, holder: randomUUID() });

await serve({
  caller: (ttlSeconds) => ({
    acquire: async (key) => {
      const lease = await holdfast.acquire(key, { ttlSeconds, waitMs: Number.POSITIVE_INFINITY });
      return { fence: lease.fence, isHeld: () => lease.held, release: () => lease.release() };
    },
  }),
});
