import * as z from 'zod/mini';
import type { CapView } from '../../shared/locks/calls/types.ts';
import type { NamedRate } from '../../shared/rates/record.ts';
import { component, count, instant, list, nullable, text } from '../schema.ts';

export const namedRate = component<NamedRate>()(
  'NamedRate',
  'A rate of a key, as a caller or an operator named it.',
  z.strictObject({
    name: text('The name of the rate.'),
    limit: count('The units in each period.'),
    per: text('The period, such as `1m`.'),
  }),
);

export const cap = component<CapView>()(
  'Cap',
  'What an operator allows of a key, whatever limit or rates its callers name.',
  z.strictObject({
    limit: nullable(
      count(
        'The most that all holders may weigh. 0: the key is paused. Null if the cap has only rates. A request that is heavier than a cap above 0 is granted alone.',
      ),
    ),
    rates: nullable(
      list(
        namedRate,
        'The rates that count for every reservation. Null if the cap has none, and in what the lock shows: read the rates of the key.',
      ),
    ),
    reason: text('Why, as the operator wrote it.'),
    by: nullable(
      text(
        'The operator: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator.',
      ),
    ),
    since: instant('When the operator set the cap.'),
    until: nullable(instant('When the cap ends by itself. Null if it lasts until an operator lifts it.')),
  }),
);
