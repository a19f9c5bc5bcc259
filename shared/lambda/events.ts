import type { EventBridgeEvent } from 'aws-lambda';
import type { ErrorCode } from '../errors.ts';

/** An event of EventBridge, from a schedule or a rule. */
export type BusEvent = EventBridgeEvent<string, unknown>;

/** The settings of a function that EventBridge starts. No caller reads its answers: a failure is tried again and ends in the dead-letter queue. */
export interface EventAdapter {
  /** Returns the payload for an event. */
  payload(event: BusEvent): unknown;
  /** Errors that count as success. */
  accepts?: readonly ErrorCode[];
}

/** A task's payload could have any of these fields, but not all of them with these types. */
export function isBusEvent(event: unknown): event is BusEvent {
  const { id, source, detail, 'detail-type': type, region, resources } = Object(event) as Partial<BusEvent>;
  const texts = [id, source, type, region].every((value) => typeof value === 'string');
  return texts && typeof detail === 'object' && detail !== null && Array.isArray(resources);
}
