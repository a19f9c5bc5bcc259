// Written from contract/openapi.json by npm run contract.

/** Where each call is. */
export const ROUTES = {
  acquire: 'POST /v1/leases/acquire',
  heartbeat: 'POST /v1/leases/heartbeat',
  release: 'POST /v1/leases/release',
  breakLease: 'POST /v1/leases/break',
  cancelWaiter: 'POST /v1/leases/cancel',
  readLeases: 'GET /v1/leases',
  commit: 'POST /v1/commits',
  readCommit: 'GET /v1/commits',
  stageUpload: 'POST /v1/uploads',
  resetFence: 'POST /v1/commits/reset-fence',
  readInFlight: 'GET /v1/commits/in-flight',
  publish: 'POST /v1/nameservice/publish',
  repairNames: 'POST /v1/nameservice/repair',
  readNames: 'GET /v1/nameservice',
  report: 'POST /v1/expired/report',
  readExpired: 'GET /v1/expired',
  clean: 'POST /v1/expired/clean',
  readContract: 'GET /openapi.json',
  whoami: 'GET /v1/whoami',
};
