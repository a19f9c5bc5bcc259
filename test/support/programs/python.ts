import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/** The path of the Python of the variable PYTHON, of CI, or of the path, if it is new enough for the package. */
export const python = [process.env.PYTHON, '.venv/bin/python', 'python3']
  .map(pathOf)
  .find((path) => path !== undefined);

/** The variables with which Python imports the client of this checkout. */
export const PYTHON_CLIENT = { PYTHONPATH: resolve('clients/python/src'), PYTHONDONTWRITEBYTECODE: '1' };

function pathOf(name: string | undefined): string | undefined {
  if (!name || (name.includes('/') && !existsSync(name))) return undefined;
  try {
    // A link of a version manager is a script, which would take longer than Python itself.
    const code = 'import sys; assert sys.version_info >= (3, 10); print(sys.executable)';
    return execFileSync(name.includes('/') ? resolve(name) : name, ['-c', code], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined;
  }
}
