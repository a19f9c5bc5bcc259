import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Credentials } from '../../client/src/sigv4.ts';
import { EXIT } from './exit-codes.ts';
import { Failure } from './failure.ts';

/** How long before they expire temporary credentials are renewed, in milliseconds. */
const EARLY_MS = 60_000;

/** How long the AWS CLI may take: it may call an identity provider, and must not outlast a lease unnoticed. */
const EXPORT_MS = 30_000;

/** The source of a caller's keys, in words. */
export const sourceOf = (awsProfile: string | undefined, env: NodeJS.ProcessEnv = process.env): string =>
  ownKeys(awsProfile, env)
    ? 'AWS_ACCESS_KEY_ID'
    : ['aws configure export-credentials', ...(awsProfile ? [`--profile ${awsProfile}`] : [])].join(' ');

/** A profile that the configuration names takes precedence over keys in the environment. */
function ownKeys(awsProfile: string | undefined, env: NodeJS.ProcessEnv): Credentials | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN } = env;
  if (awsProfile || !accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, ...(AWS_SESSION_TOKEN && { sessionToken: AWS_SESSION_TOKEN }) };
}

/**
 * Returns the keys to sign with: from the environment, otherwise from the AWS CLI, which knows SSO, roles and instance profiles.
 * @throws Failure if there are none
 */
export function credentialsFrom(
  awsProfile: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): () => Promise<Credentials> {
  const own = ownKeys(awsProfile, env);
  if (own) return async () => own;
  let known: { credentials: Promise<Credentials>; until: number } | undefined;
  return () => {
    if (known && known.until > Date.now()) return known.credentials;
    const exported = exportCredentials(awsProfile, env);
    const asked = { credentials: exported.then(({ credentials }) => credentials), until: Number.POSITIVE_INFINITY };
    known = asked;
    exported.then(
      ({ expiresAt }) => {
        asked.until = expiresAt - EARLY_MS;
      },
      () => {
        asked.until = 0;
      },
    );
    return asked.credentials;
  };
}

async function exportCredentials(awsProfile: string | undefined, env: NodeJS.ProcessEnv) {
  const args = [
    'configure',
    'export-credentials',
    '--format',
    'process',
    ...(awsProfile ? ['--profile', awsProfile] : []),
  ];
  try {
    const { stdout } = await promisify(execFile)('aws', args, { env, timeout: EXPORT_MS });
    const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = JSON.parse(stdout);
    if (!AccessKeyId || !SecretAccessKey) throw new Error('it printed no keys');
    return {
      credentials: {
        accessKeyId: String(AccessKeyId),
        secretAccessKey: String(SecretAccessKey),
        ...(SessionToken && { sessionToken: String(SessionToken) }),
      },
      expiresAt: Expiration ? Date.parse(Expiration) : Number.POSITIVE_INFINITY,
    };
  } catch (error) {
    const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
    const why = code === 'ENOENT' ? 'there is no AWS CLI' : stderr?.trim().split('\n').at(-1) || message;
    throw new Failure(
      `no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or HOLDFAST_TOKEN, or log in with the AWS CLI (${why})`,
      EXIT.forbidden,
    );
  }
}
