import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { EXIT } from '../exit-codes.ts';
import { Failure } from '../failure.ts';

/**
 * Checks that a command can be executed, as a shell would find it, so that a mistake shows before the lease is acquired.
 * @throws Failure with 127 if there is none, and with 126 if it cannot be executed
 */
export function assertExecutable(command: string, path: string | undefined): void {
  const candidates = command.includes('/')
    ? [command]
    : (path ?? '').split(delimiter).map((dir) => join(dir || '.', command));
  const kinds = command === '' ? [] : candidates.map(kindOf);
  if (kinds.includes('executable')) return;
  if (kinds.includes('other')) throw new Failure(`${command}: it cannot be executed`, EXIT.notExecutable);
  throw new Failure(`${command}: there is no such command`, EXIT.notFound);
}

function kindOf(file: string): 'executable' | 'other' | 'none' {
  try {
    if (!statSync(file).isFile()) return 'other';
    accessSync(file, constants.X_OK);
    return 'executable';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'other' : 'none';
  }
}
