import { urlOf } from './http.ts';
import type { FromEnvOptions, HoldfastOptions } from './requests.ts';
import type { Credentials } from './sigv4.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** The environment variables of the client and of the command, each under the option that it sets. */
export const VARIABLES = {
  endpoint: 'HOLDFAST_ENDPOINT',
  namespace: 'HOLDFAST_NAMESPACE',
  token: 'HOLDFAST_TOKEN',
  holder: 'HOLDFAST_HOLDER',
} as const;

export const regionIn = (env: Env): string | undefined => env.AWS_REGION || env.AWS_DEFAULT_REGION || undefined;

/** The AWS credentials in the environment. Undefined if there are none. */
export function credentialsIn(env: Env): Credentials | undefined {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = env;
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };
}

/** `npm start` listens on these hosts. The API of an AWS emulator, such as `http://abc.execute-api.localhost`, is not among them, and needs signatures. */
const UNSIGNED = /^(127(\.\d+){3}|\[::1\]|([a-z0-9-]+\.)?localhost)$/i;

/** True for the service of `npm start`, on this machine, which needs no signature. @throws TypeError if the endpoint is not a URL */
export const isLocal = (endpoint: string): boolean => UNSIGNED.test(urlOf(endpoint).hostname);

/** Adds options from the environment to the given ones, which take precedence. @throws TypeError if the endpoint or the holder is missing */
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
  const credentials = credentialsIn(env);
  if (credentials && !token && !isLocal(`${endpoint}`)) options.credentials ??= () => credentials;
  return options as HoldfastOptions;
}
