import type { ProvidedContext } from 'vitest';
import type { TestProject } from 'vitest/node';

/**
 * Stryker kills a process of tests that hangs, and its emulators would outlive it: so they belong to the command. Each process has a DynamoDB
 * of its own: one would keep all of them waiting.
 */
export default function setup(project: TestProject): void {
  const provided = JSON.parse(process.env.MUTATION_SCORE ?? '') as Partial<ProvidedContext>;
  for (const name of Object.keys(provided) as (keyof ProvidedContext)[]) project.provide(name, provided[name]);
  const { dynamodbEndpoints = [] } = provided;
  const endpoint = dynamodbEndpoints[Number(process.env.STRYKER_MUTATOR_WORKER) % dynamodbEndpoints.length];
  if (endpoint !== undefined) project.provide('dynamodbEndpoints', [endpoint]);
}
