// Written from contract/openapi.json by npm run contract.

/** Where each call is, from /v1/. */
export const ROUTES = {
  acquire: 'leases/acquire',
  heartbeat: 'leases/heartbeat',
  release: 'leases/release',
  breakLease: 'leases/break',
  readLeases: 'leases',
  cancelWaiter: 'leases/cancel',
  capKey: 'leases/cap',
  runNext: 'leases/next',
  withdraw: 'leases/withdraw',
  onceBegin: 'once/begin',
  onceComplete: 'once/complete',
  onceForget: 'once/forget',
  readOnce: 'once',
  rateReserve: 'rates/reserve',
  rateSettle: 'rates/settle',
  rateForget: 'rates/forget',
  readRates: 'rates',
  commit: 'commits',
  readCommit: 'commits',
  stageUpload: 'uploads',
  resetFence: 'commits/reset-fence',
  readInFlight: 'commits/in-flight',
  publish: 'nameservice/publish',
  repairNames: 'nameservice/repair',
  readNames: 'nameservice',
  report: 'expired/report',
  readExpired: 'expired',
  clean: 'expired/clean',
  readContract: '../openapi.json',
  readHealth: 'health',
  whoami: 'whoami',
};

/** The calls by GET; all others are POST. */
export const READS = /^(read|who)/;
