import { createRequire } from 'node:module';

/** Loads a module of Node when it is needed. An import would read each of its exports, of which some load much more. */
export const load = createRequire(import.meta.url);
