import { Holdfast, isHoldfastError } from 'holdfast-client';

const [, , endpoint = 'http://127.0.0.1:3000'] = process.argv;
const holdfast = new Holdfast({ endpoint, holder: 'commit.mjs' });
const path = `examples/${crypto.randomUUID()}.json`;
const keyOf = 'examples/commit';

const earlier = await holdfast.acquire(keyOf);
await holdfast.breakLease({ key: keyOf, fence: earlier.fence }); // an operator, while `earlier` knows nothing of it
const later = await holdfast.acquire(keyOf);

const { etag } = await holdfast.commitUnder(later, { path, ifNoneMatch: '*', body: '{"by":"later"}' });
try {
  await holdfast.commitUnder(earlier, { path, ifMatch: etag, body: '{"by":"earlier"}' });
} catch (error) {
  if (!isHoldfastError(error, 'FenceRejected')) throw error;
  console.log(`the fence of the earlier holder is refused: ${error.token < error.highest}`);
}
await later.release();
await earlier.release();
