/** What fields mean that several requests, answers and errors have. */
export const MEANING = {
  key: 'The name of the resource: 1 to 1,024 bytes of UTF-8 that do not begin with `holdfast:`.',
  holder: 'The name that the holder gives itself. Every reader of the key sees the name, and the name proves nothing.',
  requestId: 'The id of one acquisition.',
  leaseId: 'The proof of the grant, and a secret. Heartbeat and release need it, and heartbeats do not change it.',
  fence: 'The fencing token of the grant: a number that is higher in each grant of the key.',
  ticket: 'The id of a waiter in the line. Tickets sort by arrival.',
  acquiredAt: 'When the lease or the permit was granted.',
  expiresAt: 'When the lease or the permit expires, unless a heartbeat extends it.',
  remainingMs: 'How much of the lease or the permit was left when the service answered, in milliseconds.',
  ttlSeconds: 'By how much each heartbeat extends the lease or the permit, in seconds.',
  execution: 'The ARN of the execution that holds the lease or the permit, or held it when the execution ended.',
  bound: 'True if the holder has the key until its execution ends. `expiresAt` is then 400 days after the grant.',
  inGrace:
    'True if that execution has ended, and the holder may go on for `graceSeconds`, or for as long as it sends heartbeats.',
  ending:
    'True if an operator broke the lease or the permit with `wait`, or a newer request has asked the holder to stop. The holder has it until its release or its expiry.',
  data: 'What the holder shows to every reader of the key.',
  mode: 'How the key is held: together with other holders (`shared`), or alone (`exclusive`).',
  weight: 'How much of the limit the grant takes. 1 for `exclusive`.',
  used: 'The total weight of all holders. Expired holders count until another caller needs their room. 1 for an exclusive holder.',
  limit:
    'The limit that the last grant of the key named. Null if that grant was exclusive, or no grant has named a limit.',
  waiting:
    'The number of tasks and calls in line, counted up to 100, or with `waiters` up to `limit`. A lower bound if 200 or more callers have given up within the last minute.',
  alias: 'The alias, as `name:branch`.',
  path: 'The key of the object in the bucket.',
  commitId: 'The id of one commit.',
  reportId: 'The id of the report.',
  nextCursor: 'The `cursor` of the next page. Null on the last page.',
} as const;

/** The same for a field that is null in some answers. */
export const orNull = (meaning: string) => `${meaning} Null if the record does not say.`;
