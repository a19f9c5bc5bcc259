import { hostname } from 'node:os';
import { Holdfast } from '../../client/src/holdfast.ts';
import { httpTransport } from '../../client/src/http.ts';
import { type Surroundings, systemSurroundings } from '../../client/src/surroundings.ts';
import { credentialsFrom } from './credentials.ts';
import { misuse } from './failure.ts';
import { lightFetch } from './http.ts';
import { isLoopback, type Settings } from './settings.ts';
import type { ConnectOptions } from './verb.ts';

/** Nothing is idle here: a process that ends gives back first what it has asked for. */
const surroundings: Surroundings = { ...systemSurroundings, after: (ms, act) => systemSurroundings.after(ms, act) };

/** @throws Failure where requests would be signed for a region that is not known */
export function connect(
  settings: Settings,
  { holder, onEvent, fetch: send = lightFetch }: ConnectOptions = {},
): Holdfast {
  const { endpoint, token, region, awsProfile } = settings;
  const credentials = token || isLoopback(endpoint) ? undefined : credentialsFrom(awsProfile);
  const options = { endpoint, token, credentials, region, fetch: send };
  try {
    const transport = httpTransport(options, surroundings.wall);
    return new Holdfast({ transport, surroundings, onEvent, holder: holder ?? settings.holder ?? defaultHolder() });
  } catch (error) {
    if (error instanceof TypeError) throw misuse(`${error.message}: give --region, or set AWS_REGION`);
    throw error;
  }
}

/** Whom to ask: the user, the machine and the process. */
const defaultHolder = (): string => `${process.env.USER || process.env.LOGNAME || 'user'}@${hostname()}/${process.pid}`;
