import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { logLine } from '../surroundings/log.ts';
import type { Summary } from './summary.ts';

/** Subscribers recognise the event by these. */
export const EVENT_SOURCE = 'holdfast';
export const EVENT_TYPE = 'Expired Records Reported';

/** The summary, and the name of the deployment, because several may share an event bus. */
interface ReportedEvent extends Summary {
  service: string;
}

/**
 * Sends the summary of a report to the default event bus. The client is loaded at the first event, because most runs send none.
 * @param client a test's own; the default takes endpoint, region and credentials from the SDK's environment variables
 * @throws Error if the bus did not take it, which is logged too
 */
export function announcer(service: string, client?: EventBridgeClient) {
  let bus = client;
  const put = async (summary: Summary, abortSignal: AbortSignal): Promise<void> => {
    const sdk = await import('@aws-sdk/client-eventbridge');
    bus ??= new sdk.EventBridgeClient({
      requestHandler: { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true },
    });
    const detail: ReportedEvent = { ...summary, service };
    const entry = { Source: EVENT_SOURCE, DetailType: EVENT_TYPE, Detail: JSON.stringify(detail) };
    const output = await bus.send(new sdk.PutEventsCommand({ Entries: [entry] }), { abortSignal });
    const [refused] = (output.Entries ?? []).filter(({ ErrorCode }) => ErrorCode);
    if (refused) throw new Error(`the event bus refused the event: ${refused.ErrorCode}`);
  };
  return async (summary: Summary, signal: AbortSignal): Promise<void> => {
    try {
      await put(summary, signal);
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
