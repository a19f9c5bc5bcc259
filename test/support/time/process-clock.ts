import { HoldfastError, type Transport } from '../../../clients/typescript/src/index.ts';

/** Two clocks and the timers of a process, which a test moves by hand. Timers follow the monotonic clock, as on Linux. */
export { ManualClock as ManualSurroundings, settled } from '../../../clients/typescript/src/manual-clock.ts';

export interface Sent {
  operation: string;
  payload: Record<string, unknown>;
  signal: AbortSignal;
  answer(body: object): void;
  fail(code: string, fields?: object): void;
}

/** A service whose answers the test gives by hand. `reply` answers the calls for which it returns something. */
export class ManualService {
  sent: Sent[] = [];
  reply: (sent: Sent) => unknown = () => undefined;

  transport: Transport = (operation, payload, signal) =>
    new Promise((resolve, reject) => {
      const sent: Sent = {
        operation,
        payload: payload as Record<string, unknown>,
        signal,
        answer: resolve,
        fail: (code, fields) => reject(new HoldfastError({ code, detail: `${operation} failed`, ...fields })),
      };
      this.sent.push(sent);
      const answer = this.reply(sent);
      if (answer) resolve(answer);
    });

  of(operation: string): Sent[] {
    return this.sent.filter((one) => one.operation === operation);
  }
}

/** The answer of the service to acquire and heartbeat. */
export const grantOf = (payload: Record<string, unknown>, remainingMs = 60_000) => ({
  key: payload.key as string,
  holder: (payload.holder as string) ?? 'tester',
  leaseId: 'lease-1',
  version: 'version-1',
  fence: 7,
  acquiredAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-01T00:01:00.000Z',
  remainingMs,
  waitedMs: 0,
  repeated: false,
  previous: null,
});
