import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isLocal, regionIn, VARIABLES } from '../../clients/typescript/src/environment.ts';
import { isLoopback } from '../../clients/typescript/src/http.ts';
import { assertNamespace } from '../../clients/typescript/src/transport.ts';
import type { Arguments } from './arguments.ts';
import type { FoundCredentials } from './aws/found-credentials.ts';
import { credentialsFrom } from './credentials.ts';
import { fileFault, misuse, NoEndpoint } from './failure.ts';

/** The address of the service and the identity of the caller. */
export interface Settings {
  /** A URL without a trailing slash. */
  endpoint: string;
  /** The namespace of every call. Undefined for the whole deployment. */
  namespace: string | undefined;
  region: string | undefined;
  /** The holder, if no option names one. */
  holder: string | undefined;
  token: string | undefined;
  /** Finds the AWS credentials for a request. Undefined with a token, and if the service is on this machine. */
  findCredentials: (() => Promise<FoundCredentials>) | undefined;
}

const FIELDS = ['endpoint', 'namespace', 'region', 'awsProfile', 'holder'] as const;

type Profile = Partial<Record<(typeof FIELDS)[number], string>>;

interface ConfigFile {
  default?: string;
  profiles: Record<string, Profile>;
}

/**
 * Reads the settings of a call. An option takes precedence over the environment, and the environment over the default profile of the configuration file. A
 * profile takes precedence over the environment only if an option names it.
 * @throws NoEndpoint; Failure if the configuration is wrong
 */
export function readSettings(args: Arguments, env: NodeJS.ProcessEnv = process.env): Settings {
  const file = configFile(env);
  const byOption = args.text('profile');
  const profile = profileOf(file, byOption ?? (env.HOLDFAST_PROFILE || undefined));
  const setByCall = (field: 'endpoint' | 'namespace') =>
    args.text(field) ?? (byOption ? profile[field] : undefined) ?? (env[VARIABLES[field]] || profile[field]);
  const given = setByCall('endpoint');
  if (!given) throw new NoEndpoint();
  const token = env[VARIABLES.token] || undefined;
  const endpoint = checkedUrl(given, token !== undefined);
  return {
    endpoint,
    namespace: checkedNamespace(setByCall('namespace')),
    region: args.text('region') ?? profile.region ?? regionIn(env),
    holder: profile.holder,
    token,
    findCredentials: token || isLocal(endpoint) ? undefined : credentialsFrom(profile.awsProfile, env),
  };
}

/** The path of the configuration file. */
const configPath = (env: NodeJS.ProcessEnv): string =>
  join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'holdfast/config.json');

function profileOf(file: ConfigFile, name: string | undefined): Profile {
  const wanted = name ?? file.default;
  if (wanted === undefined) return {};
  const profile = Object.hasOwn(file.profiles, wanted) ? file.profiles[wanted] : undefined;
  if (!profile) {
    const known = Object.keys(file.profiles).join(', ') || 'none';
    throw misuse(`there is no profile '${wanted}' in the configuration (it has: ${known})`);
  }
  return profile;
}

function configFile(env: NodeJS.ProcessEnv): ConfigFile {
  const path = configPath(env);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { profiles: {} };
    throw misuse(`${path} cannot be read: ${fileFault(error as Error)}`);
  }
  try {
    return checkedConfig(JSON.parse(text));
  } catch (error) {
    throw misuse(`${path}: ${(error as Error).message}`);
  }
}

function checkedConfig(value: unknown): ConfigFile {
  const { default: standard, profiles = {}, ...others } = objectOf(value, 'the file');
  const [other] = Object.keys(others);
  if (other !== undefined) throw new Error(`'${other}' is neither 'default' nor 'profiles'`);
  if (standard !== undefined && typeof standard !== 'string')
    throw new Error("'default' must be the name of a profile");
  for (const [name, profile] of Object.entries(objectOf(profiles, "'profiles'")))
    for (const [field, text] of Object.entries(objectOf(profile, `the profile '${name}'`))) {
      if (!(FIELDS as readonly string[]).includes(field))
        throw new Error(`'${field}' of the profile '${name}' must be one of ${FIELDS.join(', ')}`);
      if (typeof text !== 'string' || !text) throw new Error(`'${field}' of the profile '${name}' must be a text`);
    }
  return { profiles: profiles as Record<string, Profile>, ...(standard !== undefined && { default: standard }) };
}

function objectOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${what} must be an object`);
  return value as Record<string, unknown>;
}

function checkedUrl(text: string, hasToken: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // A user and a password must not appear in a message, or in a lease file.
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password)
    throw misuse(`the endpoint must be a URL of http or https alone, not '${text.replace(/\/\/.*@/, '//***@')}'`);
  // Every request to another machine contains a token or a signature.
  if (url.protocol === 'http:' && !isLoopback(url, hasToken))
    throw misuse(
      `the endpoint must be https, or be on this machine, not '${url.href}': a token or a signature could be read on the way`,
    );
  return url.href.replace(/\/$/, '');
}

function checkedNamespace(namespace: string | undefined): string | undefined {
  try {
    assertNamespace(namespace);
    return namespace;
  } catch (error) {
    throw misuse((error as Error).message);
  }
}
