import type { RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen } from '../../../local/listen.ts';
import { type ApiAnswer, Callbacks } from './callback-model.ts';

/**
 * `lost`: the request takes effect, and its reply does not come back. The others refuse the request: the service is unavailable, the
 * rate is too high, the encryption key of the function cannot be used, or the answer is a 404 without an error code.
 */
type CallbackFault = 'lost' | 'refused' | 'throttled' | 'denied' | 'missing';

const REFUSALS: Record<Exclude<CallbackFault, 'lost'>, ApiAnswer> = {
  refused: { status: 500, error: 'ServiceException', body: { Type: 'Service', message: 'trouble' } },
  throttled: { status: 429, error: 'TooManyRequestsException', body: { Type: 'User', message: 'Rate exceeded' } },
  denied: { status: 502, error: 'KMSAccessDeniedException', body: { Type: 'Service', message: 'no use of the key' } },
  missing: { status: 404, body: {} },
};

/** The callback API (callback-model.ts) over the wire, with faults. */
export async function startCallbackDouble(now: () => number) {
  const callbacks = new Callbacks(now);
  const double = {
    callbacks,
    endpoint: '',
    /** The requests, even refused ones: `succeed`, `fail` or `describe`. */
    requests: [] as string[],
    /** What happens to the next requests, in that order. */
    faults: [] as CallbackFault[],
    /** Runs while a request is on its way. The request takes effect after it. */
    onTheWay: async (_action: string): Promise<unknown> => undefined,
    stop: () => listening.stop(),
  };
  const handle: RequestListener = async (request, response) => {
    const { method = '', url = '' } = request;
    const asked = { method, url, body: await text(request) };
    const action = /\/(succeed|fail)$/.exec(asked.url)?.[1] ?? 'describe';
    double.requests.push(action);
    await double.onTheWay(action);
    const fault = double.faults.shift();
    const answer = fault === undefined || fault === 'lost' ? callbacks.answer(asked) : REFUSALS[fault];
    if (fault === 'lost') return response.destroy();
    return reply(response, answer);
  };
  const listening = await listen(handle);
  double.endpoint = listening.url;
  return double;
}

function reply(response: ServerResponse, { status, error, body }: ApiAnswer): void {
  const type = error !== undefined && { 'x-amzn-errortype': error };
  response.writeHead(status, { 'content-type': 'application/json', ...type });
  response.end(JSON.stringify(body));
}
