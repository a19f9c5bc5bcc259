import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { eventBus } from '../aws/event-bus.ts';
import { logLine } from '../surroundings/log.ts';
import type { Summary } from './summary.ts';

/** The type of the event. Rules select the event with it. */
export const EVENT_TYPE = 'Expired Records Reported';

/**
 * Sends the summary of a report to the default event bus.
 * @param client for tests
 * @throws Error if the bus refused the event. The failure is logged too
 */
export function announceReport(service: string, client?: EventBridgeClient) {
  const put = eventBus(service, client);
  return async (summary: Summary, signal: AbortSignal): Promise<void> => {
    try {
      await put(EVENT_TYPE, [summary], signal);
    } catch (error) {
      const { name, message } = error as Error;
      logLine('ERROR', {
        message: 'the event of a report was not put on the bus',
        ...{ reportId: summary.reportId, cause: { name, message } },
      });
      throw error;
    }
  };
}
