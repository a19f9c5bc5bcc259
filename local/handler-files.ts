import { statSync } from 'node:fs';
import { basename, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { LambdaHandler } from './lambda.ts';

/** The timeout of each function of the user, in seconds. */
export const USER_TIMEOUT_SECONDS = 60;

/** The handlers of the user, by the name of the function. */
export type UserHandlers = Record<string, () => Promise<LambdaHandler>>;

/** The names that Lambda allows. */
const NAME = /^[\w-]{1,64}$/;

/**
 * The handlers in modules of the user, which are loaded at the first invocation. A function is named after its file.
 * @throws Error that names the file, if there is no such file, if Lambda does not allow the name, or if another file has the same name; at the invocation, if
 * the module has no export `handler`
 */
export function handlersIn(option: '--durable' | '--function', files: readonly string[]): UserHandlers {
  const fileOf = new Map<string, string>();
  for (const file of files) {
    const name = basename(file, extname(file));
    const other = fileOf.get(name);
    if (!statSync(file, { throwIfNoEntry: false })?.isFile())
      throw new Error(`${option} ${file}: there is no such file`);
    if (!NAME.test(name))
      throw new Error(
        `${option} ${file}: the name may have up to 64 letters, digits, hyphens and underscores, and the extension`,
      );
    if (other !== undefined) throw new Error(`${option} ${file}: ${other} has the same name`);
    fileOf.set(name, file);
  }
  return Object.fromEntries([...fileOf].map(([name, file]) => [name, () => handlerIn(file)]));
}

async function handlerIn(file: string): Promise<LambdaHandler> {
  const { handler } = (await import(pathToFileURL(resolve(file)).href)) as { handler?: LambdaHandler };
  if (!handler) throw new Error(`${file} does not export handler`);
  return handler;
}
