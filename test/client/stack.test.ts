import { setImmediate as tick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Holdfast, HoldfastError } from '../../client/src/index.ts';

const holdfast = new Holdfast({
  holder: 'me',
  transport: async () => {
    await tick();
    throw new HoldfastError({ code: 'Refused', detail: 'no' });
  },
});

it.each([
  ['acquire', (signal?: AbortSignal) => holdfast.acquire('nightly', { signal })],
  ['withLease', (signal?: AbortSignal) => holdfast.withLease('nightly', { signal }, () => {})],
  ['lead', (signal?: AbortSignal) => holdfast.lead('nightly', { signal, onElected: () => {} })],
  ['readLease', (signal?: AbortSignal) => holdfast.readLease('nightly', {}, { signal })],
] as const)(
  'The stack of an error of %s names the function that called it, with a signal or without',
  async (_, call) => {
    async function nightlyReport(signal?: AbortSignal) {
      await call(signal);
    }
    for (const signal of [undefined, new AbortController().signal]) {
      const error = await nightlyReport(signal).catch((reason: Error) => reason);
      expect(error?.stack).toMatch(/^ +at (async )?nightlyReport \(/m);
    }
  },
);
