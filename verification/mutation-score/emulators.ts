import type { ProvidedContext } from 'vitest';
import type { TestProject } from 'vitest/node';

/**
 * Stryker kills a process of tests that hangs, and its emulators would outlive it: so they belong to the command. Each process has a DynamoDB
 * of its own, until one is started again after a mutant that hung: one would keep all of them waiting.
 */
export default function setup(project: TestProject): void {
  // Where Stryker's packages are installed, vitest is theirs here, and does not know what the tests provide.
  const given = JSON.parse(process.env.MUTATION_SCORE ?? '') as Partial<ProvidedContext> & {
    dynamodbEndpoints?: string[];
  };
  const { dynamodbEndpoints = [] } = given;
  const endpoint = dynamodbEndpoints[Number(process.env.STRYKER_MUTATOR_WORKER) % dynamodbEndpoints.length];
  const provided = endpoint === undefined ? given : { ...given, dynamodbEndpoints: [endpoint] };
  for (const name of Object.keys(provided) as (keyof ProvidedContext)[]) project.provide(name, provided[name]);
}
