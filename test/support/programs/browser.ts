import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The first Chromium in the folders. If there is none, it says so and returns undefined: the tests that need it are skipped. */
export function chromiumIn(folders: string[] = (process.env.PATH ?? '').split(delimiter)): string | undefined {
  const found = ['chromium', 'chromium-browser', 'google-chrome']
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
  if (!found) console.log('skipped: there is no Chromium on this machine (apt-get install chromium)');
  return found;
}
