// dynamodb-lock-client from npm, with FailOpen: the kind of lock that ends with its lease. With TRUST_LOCAL_TIME=true, a waiting caller sleeps until
// the end of the lease by its own clock. Otherwise it sleeps for a whole lease from when it first saw the lock. The library recognizes a lost
// condition in `error.code`, which SDK 2 sets, but SDK 3 does not.
import { serve } from '../contestants/scenarios.ts';

process.env.AWS_NODEJS_CONNECTION_REUSE_ENABLED = '1'; // SDK 2 would otherwise open a connection for each call
process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = '1';
const { default: AWS } = await import('aws-sdk');
const { default: DynamoDBLockClient } = await import('dynamodb-lock-client');

const dynamodb = new AWS.DynamoDB.DocumentClient({ endpoint: process.env.AWS_ENDPOINT_URL_DYNAMODB });
const shared = { dynamodb, lockTable: process.env.PEER_TABLE, partitionKey: 'key' };
const FOREVER = 1_000_000_000;

const kinds = {
  FailOpen: (ttlSeconds) =>
    new DynamoDBLockClient.FailOpen({
      ...shared,
      leaseDurationMs: ttlSeconds * 1000,
      trustLocalTime: process.env.TRUST_LOCAL_TIME === 'true',
      retryCount: FOREVER,
    }),
  // This kind of lock ends only with its release, so a holder that crashes keeps it.
  FailClosed: () => new DynamoDBLockClient.FailClosed({ ...shared, acquirePeriodMs: 100, retryCount: FOREVER }),
};

await serve({
  caller: (ttlSeconds) => {
    const client = kinds[process.env.LOCK_KIND](ttlSeconds);
    return {
      acquire: async (key) => {
        const lock = await promised((done) => client.acquireLock(key, done));
        return { release: () => promised((done) => lock.release(done)) };
      },
    };
  },
});

function promised(act) {
  return new Promise((resolve, reject) => act((error, value) => (error ? reject(error) : resolve(value))));
}
