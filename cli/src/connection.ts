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

/** With these codes no connection was made, so nothing was sent. */
const NOT_SENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

/** @throws Failure if requests must be signed and the region is not known */
export function connect(
  settings: Settings,
  { onEvent, onRetry, timeoutMs, fetch: send }: ConnectOptions = {},
): Service {
  const { namespace, endpoint, holder = defaultHolder() } = settings;
  const tell = (error: unknown) => onRetry?.(`${messageOf(error, endpoint)}: trying again`);
  const transport = outspoken(transportFor(settings, send), tell);
  return new Service({ transport, namespace, onEvent, holder, timeoutMs });
}

/** Sends one try of a call as the caller of the settings. @throws Failure as `connect` */
export function transportFor(settings: Settings, send: typeof fetch = lightFetch): Transport {
  const { endpoint, token, region, keys } = settings;
  const credentials = keys && (async () => (await keys()).credentials);
  try {
    return certain(httpTransport({ endpoint, token, credentials, region, fetch: send }, systemSurroundings.wall));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const { message } = error;
    throw misuse(token ? `HOLDFAST_TOKEN: ${message}` : `${message}: give --region, or set AWS_REGION`);
  }
}

/** If nothing was sent, there is no grant to look for, and no reason to wait. */
const certain =
  (transport: Transport): Transport =>
  (...call) =>
    transport(...call).catch((error) => {
      const { code, message } = (error.cause ?? {}) as NodeJS.ErrnoException;
      if (code === 'ERR_INVALID_CHAR') throw misuse(`HOLDFAST_TOKEN or an AWS key: ${message}`);
      if (!isHoldfastError(error, 'Unreachable') || !code || !NOT_SENT.includes(code)) throw error;
      throw Object.assign(error, { sent: false });
    });

/** Tells once why there is another try, until an answer comes. */
function outspoken(transport: Transport, tell: (failure: unknown) => void): Transport {
  let failure: unknown;
  let isTold = false;
  return async (...call) => {
    if (failure && !isTold) tell(failure);
    isTold = failure !== undefined;
    failure = undefined;
    try {
      return await transport(...call);
    } catch (error) {
      // It ends what took too long. Why, only its caller knows.
      if (isTransient(error)) failure = call[2].aborted ? 'no answer came' : error;
      throw error;
    }
  };
}

/** The default holder tells people whom to ask: the user, the machine and the process. */
const defaultHolder = (): string => `${process.env.USER || process.env.LOGNAME || 'user'}@${hostname()}/${process.pid}`;
