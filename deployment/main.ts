import { join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { deployCommand } from './command.ts';

/** `npm run deploy`: deploys what `npm run release` wrote. */
process.exitCode = await deployCommand(join('release', `holdfast-${manifest.version}`), process.argv.slice(2));
