import { setTimeout as delay } from 'node:timers/promises';
import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb';
import { dynamodbClient } from '../../../shared/aws/dynamodb.ts';
import { jitteredPauses } from '../../../shared/locks/line/wait.ts';
import { systemIds } from '../../../shared/surroundings/ids.ts';

// What the other algorithms share. They have the client and the pauses of the product, so that the algorithms alone differ.

export const client = dynamodbClient();
export const table = process.env.PEER_TABLE;

/** Sleeps for the pauses that the product's callers make outside the line. */
export function ourPauses(): () => Promise<void> {
  const pauses = jitteredPauses(systemIds);
  return () => delay(pauses.next().value);
}

/** @returns whether the write met its condition */
export async function isWon(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}
