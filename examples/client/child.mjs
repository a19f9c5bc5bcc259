import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Holdfast } from 'holdfast-client';

const [, , endpoint = 'http://127.0.0.1:3000'] = process.argv;
const holdfast = new Holdfast({ endpoint, holder: 'child.mjs' });
const script = 'console.log("the child has a fence:", Number(process.env.FENCE) > 0)';

await holdfast.withLease('examples/child', { waitMs: 600_000 }, async (lease) => {
  const env = { ...process.env, FENCE: String(lease.fence) };
  const child = spawn(process.execPath, ['-e', script], { stdio: 'inherit', env, signal: lease.signal });
  const [code] = await once(child, 'exit');
  console.log(`it ended with ${code}`);
});
