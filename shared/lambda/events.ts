import type { EventBridgeEvent } from 'aws-lambda';
import type { ErrorCode } from '../errors.ts';

/** An event that a schedule or a rule of EventBridge sends. */
export type BusEvent = EventBridgeEvent<string, unknown>;

/**
 * The settings of a function that EventBridge starts. EventBridge ignores the function's answer to an event. If it fails,
 * EventBridge tries again, and the event ends in the dead-letter queue.
 */
export interface EventAdapter {
  payload(event: BusEvent): unknown;
  /** Errors that count as success, so that EventBridge does not try again. */
  accepts?: readonly ErrorCode[];
}

/**
 * Whether the event has the form of an EventBridge event. A task's payload has some of these fields at most, or other
 * types.
 */
export function isBusEvent(event: unknown): event is BusEvent {
  const { id, source, detail, 'detail-type': type, region, resources } = Object(event) as Partial<BusEvent>;
  const texts = [id, source, type, region].every((value) => typeof value === 'string');
  return texts && typeof detail === 'object' && detail !== null && Array.isArray(resources);
}
