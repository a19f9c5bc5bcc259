import { urlOf } from './http.ts';
import type { FromEnvOptions, HoldfastOptions } from './requests.ts';
import type { Credentials } from './sigv4.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** The environment variables of the client and of the command, by the option that they set. */
export const VARIABLES = {
  endpoint: 'HOLDFAST_ENDPOINT',
  namespace: 'HOLDFAST_NAMESPACE',
  token: 'HOLDFAST_TOKEN',
  holder: 'HOLDFAST_HOLDER',
} as const;

/** The region in the environment. */
export const regionIn = (env: Env): string | undefined => env.AWS_REGION || env.AWS_DEFAULT_REGION || undefined;

/** The AWS keys in the environment. Undefined if there are none. */
export function keysIn(env: Env): Credentials | undefined {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = env;
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
}

/** An API of an emulator of AWS, such as `http://abc.execute-api.localhost`, is signed for. */
const UNSIGNED = /^(127(\.\d+){3}|\[::1\]|([a-z0-9-]+\.)?localhost)$/i;

/** True for the service of `npm start`, on this machine, which needs no signature. @throws TypeError if the endpoint is not a URL */
export const isLocal = (endpoint: string): boolean => UNSIGNED.test(urlOf(endpoint).hostname);

/** The options that the environment has, below those that are given. @throws TypeError if the endpoint or the holder is missing */
export function optionsIn(env: Env, given: FromEnvOptions): HoldfastOptions {
  const options: { -readonly [Name in keyof FromEnvOptions]: FromEnvOptions[Name] } = {
    region: regionIn(env),
    ...given,
  };
  for (const name of Object.keys(VARIABLES) as (keyof typeof VARIABLES)[]) {
    const value = env[VARIABLES[name]];
    if (value) options[name] ??= value;
  }
  const { endpoint, holder, token } = options;
  for (const [name, value] of Object.entries({ endpoint, holder }))
    if (!value) throw new TypeError(`${VARIABLES[name as 'endpoint']} is not set, and there is no option ${name}`);
  const keys = keysIn(env);
  if (keys && !token && !isLocal(`${endpoint}`)) options.credentials ??= () => keys;
  return options as HoldfastOptions;
}
