import { expect, it } from 'vitest';
import { readService } from '../../infrastructure/read.ts';
import { createTables, startDynamodb } from '../../local/dynamodb.ts';
import { dynamodbCommand } from '../../local/dynamodb-command.ts';
import { freePort } from '../../local/ports.ts';
import { dynamodbClient } from '../../shared/aws/dynamodb.ts';
import { commitWorld } from '../support/worlds/commits.ts';
import { failure, leaseWorld } from '../support/worlds/leases.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

/** Whether Java and Maven are there, and Maven gets DynamoDB Local. */
async function hasJava(): Promise<boolean> {
  try {
    await dynamodbCommand(
      { host: '127.0.0.1', port: 1, dataDir: undefined },
      { ...process.env, DYNAMODB_EMULATOR: 'java' },
    );
    return true;
  } catch (error) {
    console.log(`skipped: no DynamoDB Local by Java on this machine (${(error as Error).message})`);
    return false;
  }
}

it.runIf(await hasJava())(
  'DynamoDB Local by Java works for leases, commits and the nameservice',
  async () => {
    process.env.DYNAMODB_EMULATOR = 'java';
    const emulator = await startDynamodb(await freePort());
    try {
      const { tables } = await readService('local');
      await createTables(emulator.endpoint, tables);
      await createTables(emulator.endpoint, tables); // as at a second start
      const tableOf = (kind: string) => tables.find((one) => one.kind === kind)?.definition.TableName ?? '';
      const dynamodb = dynamodbClient({ endpoint: emulator.endpoint });
      const { acquire, heartbeat, release, read } = await leaseWorld({
        ...{ dynamodb, table: tableOf('leases'), waitersTable: tableOf('waiters') },
      });
      const grant = await acquire({ key: 'k' });
      expect((await failure(acquire({ key: 'k', holder: 'other' }))).code).toBe('LeaseHeld');
      await heartbeat(grant);
      expect(await read({ state: 'held' })).toMatchObject({ leases: [{ key: 'k', waiting: 0 }] });
      expect(await release(grant)).toMatchObject({ released: true });
      expect((await acquire({ key: 'k' })).fence).toBeGreaterThan(grant.fence);
      const commits = await commitWorld({ dynamodb, table: tableOf('commits') });
      await commits.commit({ path: 'a', ifNoneMatch: '*', body: 'x' });
      expect((await failure(commits.commit({ path: 'a', ifNoneMatch: '*', body: 'y' }))).code).toBe(
        'PreconditionFailed',
      );
      const names = await nameserviceWorld({ dynamodb, table: tableOf('nameservice') });
      await names.publish({ op: 'initLedger', alias: 'books' });
      expect(await names.list({ prefix: 'books' })).toMatchObject({ records: [{ alias: 'books:main' }] });
    } finally {
      await emulator.stop();
    }
  },
  360_000,
);
