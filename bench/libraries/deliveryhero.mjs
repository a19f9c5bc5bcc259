// @deliveryhero/dynamodb-lock from npm. With TRUST_LOCAL_TIME=true, it polls ten times a second and takes a lock that has expired by its own
// clock. Otherwise a waiting caller sleeps for a whole lease before it tries again.
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocument } from '@aws-sdk/lib-dynamodb';
import deliveryhero from '@deliveryhero/dynamodb-lock';
import { serve } from '../contestants/scenarios.ts';

const documents = DynamoDBDocument.from(new DynamoDBClient({}));
const trusting = process.env.TRUST_LOCAL_TIME === 'true' && { trustLocalTime: true, waitDurationInMs: 100 };

await serve({
  caller: (ttlSeconds) => {
    const client = deliveryhero.dynamoDBLockClientFactory(documents, {
      tableName: process.env.PEER_TABLE,
      partitionKey: 'lockId',
      sortKey: 'lockGroup',
    });
    return {
      acquire: async (key) => {
        const options = { leaseDurationInMs: ttlSeconds * 1000, prolongLeaseEnabled: false, ...trusting };
        const lock = await client.lock('bench', key, options);
        return { release: () => client.releaseLock(lock) };
      },
    };
  },
});
