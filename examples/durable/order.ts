/** A durable function that handles one order of a tenant at a time: npm start -- --durable examples/durable/order.ts */
import { type DurableContext, withDurableExecution } from '@aws/durable-execution-sdk-js';
import { Holdfast } from 'holdfast-client';
import { withLease } from 'holdfast-client/durable';

/** In AWS, add `credentials: fromNodeProviderChain()` of `@aws-sdk/credential-providers`. */
const holdfast = new Holdfast({
  endpoint: process.env.HOLDFAST_ENDPOINT ?? 'http://127.0.0.1:3000',
  holder: 'orders',
});

interface Order {
  tenant: string;
  /** How long the settlement takes, in seconds. */
  settles: number;
}

export const handler = withDurableExecution(({ tenant, settles }: Order, ctx: DurableContext) =>
  // Set graceSeconds to the timeout of your function. Here it is 0, because nothing in this code goes on after a stop.
  withLease(ctx, holdfast, `tenant/${tenant}`, { parkSeconds: 3600, graceSeconds: 0 }, async ({ fence }) => {
    const charged = await ctx.step('charge', async () => ({ tenant, isFenced: fence > 0 }));
    await ctx.wait('settle', { seconds: settles });
    return ctx.step('report', async () => charged);
  }),
);
