import { randomUUID } from 'node:crypto';
import { ACCOUNT, REGION } from '../infrastructure/logical-ids.ts';
import type { Functions } from './functions.ts';

const UNIT_MS: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** How often a rate such as `rate(5 minutes)` fires, in milliseconds. Undefined for cron expressions, which the local stack does not run. */
export function rateMs(expression: string): number | undefined {
  const [, count, unit = ''] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression) ?? [];
  return count === undefined ? undefined : Number(count) * (UNIT_MS[unit] ?? Number.NaN);
}

/** Invokes the functions that serverless.yml schedules at a rate, for the first time after one period. */
export function startSchedules(functions: Functions): { stop(): void } {
  const timers = functions.all.flatMap((lambda) =>
    lambda.triggers.flatMap((trigger) => {
      if (trigger.kind !== 'schedule') return [];
      return trigger.rates.flatMap((rate) => {
        const periodMs = rateMs(rate);
        if (periodMs === undefined) return [];
        const call = () => functions.invokeForEvent(lambda, trigger.input ?? scheduledEvent(lambda.name));
        return [setInterval(call, periodMs)];
      });
    }),
  );
  return { stop: () => timers.forEach(clearInterval) };
}

const scheduledEvent = (name: string) => ({
  version: '0',
  id: randomUUID(),
  'detail-type': 'Scheduled Event',
  source: 'aws.events',
  account: ACCOUNT,
  time: `${new Date().toISOString().slice(0, 19)}Z`,
  region: REGION,
  resources: [`arn:aws:events:${REGION}:${ACCOUNT}:rule/${name}`],
  detail: {},
});
