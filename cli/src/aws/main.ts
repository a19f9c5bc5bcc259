import { writeSync } from 'node:fs';
import { search } from './providers.ts';

/**
 * A program that searches for AWS credentials, and writes what it found as JSON to descriptor 3. A source may start other programs, which do not get that
 * descriptor. The argument is the only profile to use.
 */
writeSync(3, JSON.stringify(await search(process.argv[2])));
process.exit(); // a source may leave connections and timers behind
