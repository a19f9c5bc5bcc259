import { dynamodbClient } from '../aws/dynamodb.ts';
import { requiredString } from '../aws/variables.ts';
import { systemClock } from '../surroundings/clock.ts';
import { systemIds } from '../surroundings/ids.ts';
import type { NameserviceDependencies } from './dependencies.ts';
import { POINTER_STYLES, type PointerStyle } from './pointers.ts';

/**
 * The dependencies of a deployed function of the nameservice.
 * @throws Error naming the variable that is missing or wrong
 */
export function nameserviceFromEnvironment(env: NodeJS.ProcessEnv = process.env): NameserviceDependencies {
  return {
    dynamodb: dynamodbClient(),
    clock: systemClock,
    ids: systemIds,
    table: requiredString('NAMESERVICE_TABLE', env),
    pointerStyle: pointerStyle(env.POINTER_ATTRIBUTES || 'address'),
  };
}

function pointerStyle(value: string): PointerStyle {
  const style = POINTER_STYLES.find((known) => known === value);
  if (!style) throw new Error(`POINTER_ATTRIBUTES must be one of ${POINTER_STYLES.join(', ')}, not '${value}'`);
  return style;
}
