/** Messages of the SDK that may contain a secret, because they quote the answer of a source or the command line of a program. */
const UNSAFE: [message: RegExp, inPlace: string][] = [
  [/^Command failed/, 'its credential_process failed'],
  [/JSON|Deserialization|is not expected/, 'its answer cannot be read'],
];

/** The longest reason, in characters. */
const MAX_LENGTH = 200;

/** The reason why a source gave no credentials, in one line and without a secret. */
export function credentialsFault(error: unknown): string {
  const { message } = error instanceof Error ? error : new Error(String(error));
  const [, inPlace] = UNSAFE.find(([unsafe]) => unsafe.test(message)) ?? [];
  const [line = ''] = (inPlace ?? message).trim().split('\n');
  return line.replace(/\.$/, '').slice(0, MAX_LENGTH);
}
