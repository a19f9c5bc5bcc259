import { writeSync } from 'node:fs';
import { search } from './providers.ts';

/**
 * A program that searches AWS keys, and writes what it found as JSON to descriptor 3, which the programs that a source starts do not have.
 * Its argument is the only profile to use.
 */
writeSync(3, JSON.stringify(await search(process.argv[2])));
process.exit(); // a source may leave connections and timers behind
