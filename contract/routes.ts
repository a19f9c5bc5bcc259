import { COMMIT_ROUTES } from './routes/commits.ts';
import { CONTRACT_ROUTES } from './routes/contract.ts';
import { EXPIRY_ROUTES } from './routes/expiry.ts';
import { LEASE_ROUTES } from './routes/leases.ts';
import { NAMESERVICE_ROUTES } from './routes/nameservice.ts';
import { ONCE_ROUTES } from './routes/once.ts';
import { QUEUE_ROUTES } from './routes/queue.ts';
import { RATE_ROUTES } from './routes/rates.ts';
import type { Route } from './routes/route.ts';

/** Every route of a deployment. */
export const ROUTES: readonly Route[] = [
  ...LEASE_ROUTES,
  ...QUEUE_ROUTES,
  ...ONCE_ROUTES,
  ...RATE_ROUTES,
  ...COMMIT_ROUTES,
  ...NAMESERVICE_ROUTES,
  ...EXPIRY_ROUTES,
  ...CONTRACT_ROUTES,
];
