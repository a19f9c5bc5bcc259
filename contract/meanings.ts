/** Descriptions of the fields that several requests, answers and errors share. */
export const MEANING = {
  key: 'The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`.',
  holder: 'The name that the holder gives itself, for people who read the key. It proves nothing.',
  requestId: 'The id of one acquisition.',
  leaseId: 'The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it.',
  fence: 'The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder.',
  ticket: 'The id of a waiter in the line. Tickets sort by arrival.',
  acquiredAt: 'When the lease or the permit was granted.',
  expiresAt: 'When the lease or the permit expires, unless a heartbeat extends it.',
  remainingMs: 'How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says.',
  ttlSeconds: 'How long the grant lasts from each heartbeat, in seconds.',
  execution: 'The ARN of the execution that holds the grant, or held it until the execution ended.',
  bound:
    'True if the grant lasts until its execution ends, without heartbeats. `expiresAt` is then 400 days after the grant.',
  inGrace:
    'True if the execution has ended, but the holder may go on for `graceSeconds`, or for as long as it sends heartbeats.',
  ending:
    'True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop. The holder keeps the grant until its release or its expiry.',
  data: 'JSON that the holder shows to every reader of the key, such as a link to its log.',
  mode: 'How the key is held: together with other holders (`shared`), or alone (`exclusive`).',
  weight: 'How much of the limit the grant takes. 1 for `exclusive`.',
  used: 'The total weight of all holders. Expired holders count until another caller needs their room. An exclusive holder counts 1.',
  limit:
    'The limit that the last grant of the key named. Null if that grant was exclusive, or no grant has named a limit.',
  waiting:
    'The number of tasks and calls in line, counted up to 100, or with `waiters` up to `limit`. It may be too low if 200 or more callers have stopped waiting within the last minute.',
  alias: 'The alias, as `name:branch`.',
  path: 'The key of the object in the bucket.',
  commitId: 'The id of one commit.',
  reportId: 'The id of the report.',
  nextCursor: 'To read the next page, send it as `cursor`. Null on the last page.',
} as const;

/** For a field that is null if the record lacks it, as records of third-party clients do. */
export const orNull = (meaning: string) => `${meaning} Null if the record does not say.`;
