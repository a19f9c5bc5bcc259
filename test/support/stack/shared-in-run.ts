import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';

/**
 * Does work once for the whole run, in the first worker that needs it. The others wait for its result.
 * @param work its result must be JSON
 * @throws Error in every worker, if the work failed
 */
export async function sharedInRun<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
  const file = join(inject('sharedFolder'), name);
  const isFirst = await mkdir(`${file}.begun`).then(
    () => true,
    () => false,
  );
  if (isFirst) {
    const outcome = await work().then(
      (result) => ({ result }),
      (error: Error) => ({ error: error.message }),
    );
    await writeFile(`${file}.partly`, JSON.stringify(outcome));
    await rename(`${file}.partly`, file);
  }
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text === undefined) {
      await delay(50);
      continue;
    }
    const outcome: { result: Result } | { error: string } = JSON.parse(text);
    if ('error' in outcome) throw new Error(outcome.error);
    return outcome.result;
  }
}
