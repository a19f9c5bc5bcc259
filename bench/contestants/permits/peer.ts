import { setTimeout as delay } from 'node:timers/promises';
import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb';
import { dynamodbClient } from '../../../shared/aws/dynamodb.ts';
import { jitteredPauses } from '../../../shared/locks/line/wait.ts';
import { systemIds } from '../../../shared/surroundings/ids.ts';

// Shared by the other algorithms. They use the client and the pauses of Holdfast, so that only the algorithms differ.

export const client = dynamodbClient();
export const table = process.env.PEER_TABLE;

/** Sleeps like a caller of Holdfast that polls outside the line. */
export function ourPauses(): () => Promise<void> {
  const pauses = jitteredPauses(systemIds);
  return () => delay(pauses.next().value);
}

/** @returns false if the condition of the write failed */
export async function isWon(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}
