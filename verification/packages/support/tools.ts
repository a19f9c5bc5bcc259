import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import manifest from '../package.json' with { type: 'json' };

const HERE = resolve(import.meta.dirname, '..');

/** Installs the packages of the package.json of this folder, which `npm install` of the repository leaves out because only these checks need them. */
export function setup(): void {
  if (Object.keys(manifest.dependencies).some((name) => !existsSync(toolIn(name))))
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** @param path in the folder of those packages. @returns the absolute path */
export const toolIn = (path: string): string => join(HERE, 'node_modules', path);
