import { withDurableExecution } from '@aws/durable-execution-sdk-js';
import { withLease } from 'holdfast-client/durable';
import { holdfast } from '../handlers/client.ts';
export const handler = withDurableExecution((event: { tenant: string }, ctx) =>
  withLease(ctx, holdfast, `tenant/${event.tenant}`, { limit: 5 }, async ({ fence }) => {
    await ctx.wait({ hours: 2 });
    return ctx.step('report', async () => ({ fence }));
  }),
);
