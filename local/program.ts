// How the user has started the local stack. The build of `holdfast dev` puts the module `program-of-package.ts` in place of this one.

export const PROGRAM = 'npm start';

/** What goes between the program and its options. */
export const BEFORE_OPTIONS = ' --';

/** The first thing to try. @param url the address of the API */
export const firstStep = (url: string): string =>
  `curl -s ${url}/v1/leases/acquire -H 'content-type: application/json' -d '{"key": "hello", "holder": "me", "ttlSeconds": 60}'`;
