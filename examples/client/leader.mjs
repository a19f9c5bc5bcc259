import { Holdfast } from 'holdfast-client';

const [, , endpoint = 'http://127.0.0.1:3000'] = process.argv;

async function candidate(name, signal, onElected) {
  const holdfast = new Holdfast({ endpoint, holder: name });
  await holdfast.lead('examples/leader', { ttlSeconds: 5, signal, onElected });
}

const stopFirst = new AbortController();
const stopSecond = new AbortController();
let second;
await candidate('first', stopFirst.signal, (lease) => {
  console.log('first leads');
  second = candidate('second', stopSecond.signal, (next) => {
    console.log(`second leads, with a higher fence: ${next.fence > lease.fence}`);
    stopSecond.abort();
  });
  stopFirst.abort();
});
await second;
console.log('nobody leads');
