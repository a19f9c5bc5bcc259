import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { type Granted, untilAcquired } from './holdfast.ts';
import { serve } from './scenarios.ts';

/** Calls the routes of a local stack, whose URL is in the environment, over connections that stay open. */
const url = process.env.HOLDFAST_URL ?? '';
const agent = new Agent({ keepAlive: true });

await serve({
  caller: (ttlSeconds) => {
    const holder = randomUUID();
    return {
      acquire: async (key) => {
        const task = { key, holder, ttlSeconds, waitSeconds: 20 };
        const { leaseId, expiresAt } = await untilAcquired((retryWith) => post('acquire', { ...task, ...retryWith }));
        return {
          expiresAt: Date.parse(expiresAt),
          release: () => post('release', { key, leaseId }),
          heartbeat: () => post('heartbeat', { key, leaseId }),
        };
      },
    };
  },
});

function post(call: string, payload: object): Promise<Granted> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', agent, headers: { 'content-type': 'application/json' } };
    const sent = request(`${url}/v1/leases/${call}`, options, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const body = JSON.parse(Buffer.concat(chunks).toString());
      if ((response.statusCode ?? 0) < 400) resolve(body);
      else
        reject(
          Object.assign(new Error(`${call} answered ${JSON.stringify(body)}`), { code: body.code, context: body }),
        );
    });
    sent.on('error', reject).end(JSON.stringify(payload));
  });
}
