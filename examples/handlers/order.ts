/** An HTTP handler. While a request for an order runs, a second request for the same order gets 409 with retry-after. */

import type { APIGatewayProxyEventV2, Context } from 'aws-lambda';
import { conflict, leased } from 'holdfast-client/handlers';
import { holdfast } from './client.ts';

export const handler = leased({
  holdfast,
  key: (event: APIGatewayProxyEventV2) => `order/${event.pathParameters?.id}`,
  onHeld: conflict(),
})(async (event, _context: Context, lease) => {
  await ship(event.pathParameters?.id, lease.signal);
  return { statusCode: 200, body: JSON.stringify({ shipped: event.pathParameters?.id }) };
});

async function ship(_id: string | undefined, signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 500));
  signal.throwIfAborted();
}
