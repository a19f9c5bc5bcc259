import type { LambdaHandler } from './lambda.ts';

/**
 * Loads the handler of a function. The build of `holdfast dev` replaces this module with the bundled functions.
 * @param source for example functions/leases/acquire.ts
 */
export async function loadHandler(source: string): Promise<LambdaHandler> {
  const { handler } = (await import(`../${source}`)) as { handler: LambdaHandler };
  return handler;
}
