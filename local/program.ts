// The command that has started the local stack. The build of `holdfast dev` replaces this module with `program-of-package.ts`.

export const PROGRAM = 'npm start';

/** The text between the command and its options. */
export const BEFORE_OPTIONS = ' --';

/** A command to try first. @param url the address of the API */
export const firstStep = (url: string): string =>
  `curl -s ${url}/v1/leases/acquire -H 'content-type: application/json' -d '{"key": "hello", "holder": "me", "ttlSeconds": 60}'`;
