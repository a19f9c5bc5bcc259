import { createRequire } from 'node:module';

/** Loads a Node module when it is needed. An import would read each export of the module, and some exports load much more. */
export const load = createRequire(import.meta.url);
