interface Span {
  setAttribute(name: string, value: string | number): unknown;
  recordException(error: Error): void;
  setStatus(status: { code: 2; message?: string }): unknown;
  end(): void;
}

interface Tracer {
  startActiveSpan<T>(name: string, options: { kind: 2; attributes: object }, work: (span: Span) => T): T;
}

/** Every copy of @opentelemetry/api 1.x registers under this global. Without an import, the client also works where that package is missing. */
const API = Symbol.for('opentelemetry.js.api.1');

/** Runs some work in a span of its own if the process uses OpenTelemetry. */
export async function traced<T>(name: string, attributes: object, work: (span?: Span) => Promise<T>): Promise<T> {
  const api = (globalThis as { [API]?: { trace?: { getTracer(name: string): Tracer } } })[API];
  const tracer = api?.trace?.getTracer('holdfast-client');
  if (!tracer) return work();
  return tracer.startActiveSpan(`holdfast.${name}`, { kind: 2, attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.recordException(error as Error);
      span.setStatus({ code: 2, message: String((error as Error)?.message) });
      throw error;
    } finally {
      span.end();
    }
  });
}
