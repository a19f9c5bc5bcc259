import type { ProvidedContext } from 'vitest';
import type { TestProject } from 'vitest/node';

/**
 * Stryker kills a process of tests that hangs. Its emulators would outlive it, so the command owns them. Each process has a DynamoDB
 * of its own, because one DynamoDB would keep all of them waiting. A process that is started again after a mutant that hung shares one.
 */
export default function setup(project: TestProject): void {
  // In this folder, vitest is the copy of Stryker's packages, which does not know the types of what the tests provide.
  const given = JSON.parse(process.env.MUTATION_SCORE ?? '') as Partial<ProvidedContext> & {
    dynamodbEndpoints?: string[];
  };
  const { dynamodbEndpoints = [] } = given;
  const endpoint = dynamodbEndpoints[Number(process.env.STRYKER_MUTATOR_WORKER) % dynamodbEndpoints.length];
  const provided = endpoint === undefined ? given : { ...given, dynamodbEndpoints: [endpoint] };
  for (const name of Object.keys(provided) as (keyof ProvidedContext)[]) project.provide(name, provided[name]);
}
