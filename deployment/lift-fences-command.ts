import { parseArgs } from 'node:util';
import { connect } from './aws.ts';
import { Refusal } from './failure.ts';
import { liftFences } from './lift-fences.ts';

/** `npm run lift-fences`: for a lease table that was restored to a point in time, before callers use it. */
try {
  const { table, region } = parseArgs({ options: { table: { type: 'string' }, region: { type: 'string' } } }).values;
  if (!table) throw new Refusal('usage: npm run lift-fences -- --table NAME [--region REGION]');
  const aws = await connect(region);
  const lifted = await liftFences(aws.dynamodb, table, Date.now());
  console.log(`${lifted} fences of ${table} in account ${aws.account}, region ${aws.region} were lifted`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = error instanceof Refusal ? 64 : 1;
}
