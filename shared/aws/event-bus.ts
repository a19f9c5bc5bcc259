import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';

/** The source of Holdfast's events. Rules select the events with it. */
export const EVENT_SOURCE = 'holdfast';

/** The most events that EventBridge accepts in one request. */
const MAX_ENTRIES = 10;

/** Puts events of one type on the bus. @throws Error if the bus refused one of them */
export type PutEvents = (type: string, details: readonly object[], signal: AbortSignal) => Promise<void>;

/**
 * Puts events on the default event bus. Each event names the deployment, because several deployments may share the bus.
 * The client is loaded with the first event, because most runs send none.
 * @param client for tests; the default takes endpoint, region and credentials from the SDK's environment variables
 */
export function eventBus(service: string, client?: EventBridgeClient): PutEvents {
  let bus = client;
  return async (DetailType, details, abortSignal) => {
    const sdk = await import('@aws-sdk/client-eventbridge');
    bus ??= new sdk.EventBridgeClient({
      requestHandler: { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true },
    });
    const entries = details.map((detail) => ({
      ...{ Source: EVENT_SOURCE, DetailType, Detail: JSON.stringify({ ...detail, service }) },
    }));
    while (entries.length > 0) {
      const command = new sdk.PutEventsCommand({ Entries: entries.splice(0, MAX_ENTRIES) });
      const { Entries: answered = [] } = await bus.send(command, { abortSignal });
      const refused = answered.find(({ ErrorCode }) => ErrorCode);
      if (refused) throw new Error(`the event bus refused the event: ${refused.ErrorCode}`);
    }
  };
}
