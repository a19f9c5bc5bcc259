import { hostname } from 'node:os';
import { isTransient } from '../../clients/typescript/src/attempt.ts';
import { isHoldfastError } from '../../clients/typescript/src/errors.ts';
import { httpTransport } from '../../clients/typescript/src/http.ts';
import { systemSurroundings } from '../../clients/typescript/src/surroundings.ts';
import type { Transport } from '../../clients/typescript/src/transport.ts';
import { messageOf, misuse } from './failure.ts';
import { lightFetch } from './http.ts';
import { Service } from './service.ts';
import type { Settings } from './settings.ts';
import type { ConnectOptions } from './verb.ts';

/** Error codes that mean that no connection was made, so nothing was sent. */
const NOT_SENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

/** Makes the service for the settings of a call. @throws Failure if requests must be signed and the region is not known */
export function connect(
  settings: Settings,
  { onEvent, onRetry, timeoutMs, fetch: send }: ConnectOptions = {},
): Service {
  const { namespace, endpoint, holder = defaultHolder() } = settings;
  const note = (error: unknown) => onRetry?.(`${messageOf(error, endpoint)}: trying again`);
  const transport = withRetryNotes(transportFor(settings, send), note);
  return new Service({ transport, namespace, onEvent, holder, timeoutMs });
}

/** The transport with the endpoint and the credentials of the settings. @throws Failure as `connect` */
export function transportFor(settings: Settings, send: typeof fetch = lightFetch): Transport {
  const { endpoint, token, region, findCredentials } = settings;
  const credentials = findCredentials && (async () => (await findCredentials()).credentials);
  try {
    return markingUnsent(httpTransport({ endpoint, token, credentials, region, fetch: send }, systemSurroundings.wall));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const { message } = error;
    throw misuse(token ? `HOLDFAST_TOKEN: ${message}` : `${message}: give --region, or set AWS_REGION`);
  }
}

/** Marks the error of a request that was never sent, so that the client need not withdraw it. */
const markingUnsent =
  (transport: Transport): Transport =>
  (...call) =>
    transport(...call).catch((error) => {
      const { code, message } = (error.cause ?? {}) as NodeJS.ErrnoException;
      if (code === 'ERR_INVALID_CHAR') throw misuse(`HOLDFAST_TOKEN or the AWS credentials: ${message}`);
      if (!isHoldfastError(error, 'Unreachable') || !code || !NOT_SENT.includes(code)) throw error;
      throw Object.assign(error, { sent: false });
    });

/** Prints why a call is tried again, one line until an answer comes. */
function withRetryNotes(transport: Transport, note: (failure: unknown) => void): Transport {
  let failure: unknown;
  let isNoted = false;
  return async (...call) => {
    if (failure && !isNoted) note(failure);
    isNoted = failure !== undefined;
    failure = undefined;
    try {
      return await transport(...call);
    } catch (error) {
      // The client aborts a try that takes too long, so the error says nothing.
      if (isTransient(error)) failure = call[2].aborted ? 'no answer came' : error;
      throw error;
    }
  };
}

/** The default holder, by which people know whom to ask: the user, the machine and the process. */
const defaultHolder = (): string => `${process.env.USER || process.env.LOGNAME || 'user'}@${hostname()}/${process.pid}`;
