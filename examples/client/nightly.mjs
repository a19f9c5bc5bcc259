import { Holdfast, isHoldfastError } from 'holdfast-client';

const [, , endpoint = 'http://127.0.0.1:3000'] = process.argv;
const first = new Holdfast({ endpoint, holder: 'first' });
const second = new Holdfast({ endpoint, holder: 'second' });

const result = await first.withLease('examples/nightly', { ttlSeconds: 10 }, async (lease) => {
  try {
    await second.acquire('examples/nightly');
  } catch (error) {
    if (!isHoldfastError(error, 'LeaseHeld')) throw error;
    console.log(`second: ${error.holder} holds it`);
  }
  lease.assertHeld();
  return 'done';
});
console.log(`first: ${result}`);
await second.withLease('examples/nightly', { waitMs: 5000 }, () => console.log('second: my turn'));
