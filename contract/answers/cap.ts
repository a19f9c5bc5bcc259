import * as z from 'zod/mini';
import type { CapView } from '../../shared/locks/calls/types.ts';
import type { NamedRate } from '../../shared/rates/cap-after.ts';
import { component, count, instant, list, nullable, text } from '../schema.ts';

export const namedRate = component<NamedRate>()(
  'NamedRate',
  'A rate of a key, as a caller or an operator named it.',
  z.strictObject({
    name: text('The name of the rate.'),
    limit: count('How many units may start in each period.'),
    per: text('The period, such as `1m`.'),
  }),
);

export const cap = component<CapView>()(
  'Cap',
  'What an operator allows for a key, whatever limit or rates the callers name.',
  z.strictObject({
    limit: nullable(
      count(
        'The highest total weight of all holders. 0: the key is paused. Null if the cap has only rates. A request that is heavier than a cap above 0 is still granted, but alone.',
      ),
    ),
    rates: nullable(
      list(
        namedRate,
        'The rates that count for every reservation. Null if the cap has none. Null also where the lock shows the cap: read the rates of the key instead.',
      ),
    ),
    reason: text('Why the key is capped, in the words of the operator.'),
    by: nullable(
      text(
        'The operator: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator.',
      ),
    ),
    since: instant('When the operator set the cap.'),
    until: nullable(instant('When the cap ends by itself. Null if it lasts until an operator lifts it.')),
  }),
);
