import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, it } from 'vitest';
import { Holdfast } from '../../client/src/index.ts';
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

it('a process without OpenTelemetry records no span, and misses no function', async () => {
  expect(await setting().withLease('nightly', ({ fence }) => fence)).toBe(7);
});
