import { setImmediate as tick } from 'node:timers/promises';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, it } from 'vitest';
import { Holdfast, HoldfastError } from '../../clients/typescript/src/index.ts';
import { grantOf, ManualService, ManualSurroundings } from '../support/time/process-clock.ts';

afterEach(() => {
  trace.disable();
  context.disable();
});

function setting() {
  const service = new ManualService();
  service.reply = ({ operation, payload }) =>
    operation === 'acquire' ? grantOf(payload) : { key: payload.key, released: true };
  return new Holdfast({ transport: service.transport, holder: 'x', surroundings: new ManualSurroundings() });
}

it('a process with OpenTelemetry records a span of the work, with the acquisition inside', async () => {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const holdfast = setting();
  await expect(
    holdfast.withLease('nightly', () => {
      throw new Error('mine');
    }),
  ).rejects.toThrow('mine');
  const spans = new Map(exporter.getFinishedSpans().map((span) => [span.name, span]));
  const outer = spans.get('holdfast.withLease');
  const inner = spans.get('holdfast.acquire');
  expect(inner?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId);
  expect(inner?.attributes).toEqual({ 'holdfast.key': 'nightly', 'holdfast.fence': 7 });
  expect(outer?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'mine' });
  expect(outer?.events.map(({ name }) => name)).toEqual(['exception']);
});

it('a process without OpenTelemetry works, and does not record spans', async () => {
  expect(await setting().withLease('nightly', ({ fence }) => fence)).toBe(7);
});

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
] as const)('the stack of an error of %s names the function that called it', async (_, call) => {
  async function nightlyReport(signal?: AbortSignal) {
    await call(signal);
  }
  for (const signal of [undefined, new AbortController().signal]) {
    const error = await nightlyReport(signal).catch((reason: Error) => reason);
    expect(error?.stack).toMatch(/^ +at (async )?nightlyReport \(/m);
  }
});
