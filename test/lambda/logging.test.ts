import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as z from 'zod/mini';
import { post, throughTask } from '../support/adapters.ts';

const lines: string[] = [];
beforeEach(() => {
  lines.length = 0;
  vi.stubEnv('POWERTOOLS_LOG_LEVEL', 'INFO');
  vi.resetModules(); // the logger reads its level when it is loaded
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((chunk) => {
      lines.push(String(chunk));
      return true;
    });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.resetModules();
});

const requests = () =>
  lines
    .flatMap((line) => line.split('\n'))
    .filter((line) => /"(answered|refused)"/.test(line))
    .map((line) => JSON.parse(line));

it('a function logs the fields that it declares, of input, result and error, and no others', async () => {
  const { lambdaFunction } = await import('../../shared/lambda/function.ts');
  const { HoldfastError } = await import('../../shared/errors.ts');
  const handler = lambdaFunction({
    name: 'test',
    input: z.strictObject({ asked: z.string(), secret: z.string(), refuse: z.boolean() }),
    run: async ({ refuse }) => {
      if (refuse) throw new HoldfastError('Conflict', 'refused', { known: 'context', token: 'hidden-context' });
      return { known: 'result', leaseId: 'hidden-result' };
    },
    logged: ['asked', 'known'],
    loggedAs: ({ asked }) => ({ words: `${asked} in words` }),
  });
  await post(handler, { asked: 'a', secret: 'hidden-input', refuse: false });
  await throughTask(handler, { asked: 'b', secret: 'hidden-input', refuse: true });
  await throughTask(handler, { asked: 1, secret: 'hidden-input', refuse: true });
  const log = lines.join('');
  vi.restoreAllMocks();

  expect(requests()).toMatchObject([
    { message: 'answered', function: 'test', adapter: 'http', asked: 'a', known: 'result', words: 'a in words' },
    { message: 'refused', adapter: 'task', code: 'Conflict', asked: 'b', known: 'context', words: 'b in words' },
    { message: 'refused', code: 'InvalidRequest', issues: [{ path: 'asked', message: expect.any(String) }] },
  ]);
  expect(log).not.toMatch(/hidden-/);
  expect(Object.keys(requests()[2])).not.toContain('asked');
});
