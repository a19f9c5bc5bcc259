import type { Operation } from './transport.ts';

/** Where each call of the contract is. */
export const ROUTES: Record<Operation, string> = {
  acquire: 'POST /v1/leases/acquire',
  heartbeat: 'POST /v1/leases/heartbeat',
  release: 'POST /v1/leases/release',
  breakLease: 'POST /v1/leases/break',
  cancelWaiter: 'POST /v1/leases/cancel',
  readLeases: 'GET /v1/leases',
  commit: 'POST /v1/commits',
  readCommit: 'GET /v1/commits',
  stageUpload: 'POST /v1/uploads',
  publish: 'POST /v1/nameservice/publish',
  readNames: 'GET /v1/nameservice',
  report: 'POST /v1/expired/report',
  readExpired: 'GET /v1/expired',
  clean: 'POST /v1/expired/clean',
  readContract: 'GET /openapi.json',
};
