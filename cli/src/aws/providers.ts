import { fromHttp, fromIni, fromInstanceMetadata, fromTokenFile } from '@aws-sdk/credential-providers';
import type { Credentials } from '../../../clients/typescript/src/sigv4.ts';
import type { FoundCredentials } from './found-credentials.ts';
import { credentialsFault } from './reason.ts';

/** Credentials of a provider of the SDK, which marks how it got them. */
type Given = Credentials & { expiration?: Date; $source?: object };

interface Source {
  name: string;
  /** Why this source cannot be asked. Undefined if it can. */
  missing?: string | undefined;
  provide: () => Promise<Given>;
}

/** Hides the log of the SDK, which is for its developers. */
const logger = { debug() {}, info() {}, warn() {}, error() {} };

/** The ways in which a profile gets credentials, by the marks of the SDK. */
const WAYS: Record<string, string> = {
  CREDENTIALS_PROFILE_SSO: 'SSO',
  CREDENTIALS_PROFILE_SSO_LEGACY: 'SSO',
  CREDENTIALS_PROFILE_PROCESS: 'credential_process',
  CREDENTIALS_PROFILE_LOGIN: 'aws login',
  CREDENTIALS_PROFILE_STS_WEB_ID_TOKEN: 'web identity',
  CREDENTIALS_PROFILE_SOURCE_PROFILE: 'role',
  CREDENTIALS_PROFILE: 'keys',
};

/**
 * Asks the sources of AWS credentials other than the environment, with the AWS providers and in their order. A source that is set up wrongly ends the search,
 * as in every SDK, because the next source could give another identity.
 * @param profile the only profile to use; undefined for all sources
 * @returns credentials, or a text that says for each source why it gave none
 */
export async function search(profile: string | undefined): Promise<FoundCredentials | string> {
  const sources = profile === undefined ? everySource() : [profileSource(profile)];
  const why: string[] = [];
  for (const { name, missing, provide } of sources) {
    if (missing === undefined)
      try {
        return foundBy(name, await provide());
      } catch (error) {
        why.push(`${name}: ${credentialsFault(error)}`);
        if (!(error as { tryNextLink?: boolean }).tryNextLink) break;
      }
    else why.push(`${name}: ${missing}`);
  }
  return why.join('; ');
}

function everySource(): Source[] {
  const { env } = process;
  const isContainer = env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI || env.AWS_CONTAINER_CREDENTIALS_FULL_URI;
  const isDisabled = env.AWS_EC2_METADATA_DISABLED && env.AWS_EC2_METADATA_DISABLED !== 'false';
  const missing = (names: string[]) => {
    const unset = names.filter((name) => !env[name]);
    return unset.length > 0 ? `${unset.join(' and ')} ${unset.length > 1 ? 'are' : 'is'} not set` : undefined;
  };
  return [
    profileSource(undefined),
    {
      name: 'web identity',
      missing: missing(['AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_ROLE_ARN']),
      provide: fromTokenFile({ logger }),
    },
    {
      name: 'container endpoint',
      missing: isContainer ? undefined : 'no AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI is set',
      // In a function, because `fromHttp` reads its variables at once, and throws for a wrong one.
      provide: async () => fromHttp({ logger })(),
    },
    {
      name: 'instance metadata',
      missing: isContainer ? 'not asked in a container' : isDisabled ? 'AWS_EC2_METADATA_DISABLED is set' : undefined,
      provide: fromInstanceMetadata({ logger }),
    },
  ];
}

const profileSource = (profile: string | undefined): Source => ({
  name: `profile ${profile ?? (process.env.AWS_PROFILE || 'default')}`,
  provide: fromIni({ logger, ...(profile !== undefined && { profile }) }),
});

function foundBy(
  name: string,
  { accessKeyId, secretAccessKey, sessionToken, expiration, $source = {} }: Given,
): FoundCredentials {
  const way = Object.keys(WAYS).find((field) => field in $source);
  return {
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
    source: way ? `${name} (${WAYS[way]})` : name,
    ...(expiration && { expiresAt: expiration.getTime() }),
  };
}
