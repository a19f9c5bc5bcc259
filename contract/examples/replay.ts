/** One call of a scenario, with its recorded answer. */
export interface Step {
  /** The name of the function in the deployment. */
  function: string;
  /** The name of the example in the document. A step without a name only prepares later steps, and is not shown. */
  name?: string;
  summary?: string;
  /** True if the recorded answer has only the first fields and entries of an answer that is too long to show. */
  cut?: true;
  request: Record<string, unknown>;
  status: number;
  answer: unknown;
}

interface Answered {
  status: number;
  answer: unknown;
}

/** Fields that later requests send back, though their values differ in every run. */
const IDENTIFIERS = ['fence', 'leaseId', 'ticket', 'uploadId', 'reportId', 'reservation', 'paidUntil'];

/** Fields whose values differ in every run. */
export const VARIES = [
  ...IDENTIFIERS,
  ...[
    'acquiredAt',
    'expiresAt',
    'remainingMs',
    'retryAfterMs',
    'updatedAt',
    'traceId',
    'waitedMs',
    'at',
    'doneAt',
    'keptUntil',
    'startAt',
    'waitMs',
    'sleepSeconds',
    'since',
    'until',
  ],
  ...['holderUntil', 'lastHeartbeatAt', 'parkedAt', 'deadline', 'dueAt', 'writtenAt'],
  ...['version', 'url', 'token', 'highest', 'startedAt', 'finishedAt', 'location', 'scanned', 'readUnits'],
  ...['expiredAt', 'ageSeconds', 'oldestAgeSeconds', 'N'],
];

/**
 * Sends the requests of a scenario, one after the other.
 * @returns the steps with the answers of this run. A value that differs in every run is replaced by the recorded one if both have the same
 *   type, so a run without a real difference equals its recording.
 */
export async function replay(steps: readonly Step[], send: (step: Step) => Promise<Answered>): Promise<Step[]> {
  const current = new Map<unknown, unknown>();
  const replayed: Step[] = [];
  for (const step of steps) {
    const { status, answer } = await send({ ...step, request: withCurrent(step.request, current) as Step['request'] });
    noteIdentifiers({ recorded: step.answer, received: answer }, current);
    replayed.push({ ...step, status, answer: normalised({ recorded: step.answer, received: answer }, step.cut) });
  }
  return replayed;
}

interface Pair {
  recorded: unknown;
  received: unknown;
}

/** Remembers which identifier of this run stands for a recorded one. */
function noteIdentifiers(pair: Pair, current: Map<unknown, unknown>): void {
  for (const [name, member] of members(pair)) {
    if (IDENTIFIERS.includes(name) && isScalar(member.recorded)) current.set(member.recorded, member.received);
    else noteIdentifiers(member, current);
  }
}

/** The request with the identifiers of this run. */
function withCurrent(value: unknown, current: Map<unknown, unknown>): unknown {
  if (Array.isArray(value)) return value.map((entry) => withCurrent(entry, current));
  if (value === null || typeof value !== 'object') return current.get(value) ?? value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withCurrent(member, current)]));
}

function normalised(pair: Pair, isCut = false): unknown {
  const { received } = pair;
  if (isScalar(received)) return received;
  const shown = members(pair).filter(([, member]) => !isCut || member.recorded !== undefined);
  const entries = shown.map(([name, member]) => {
    const isSame =
      VARIES.includes(name) && isScalar(member.received) && kindOf(member.recorded) === kindOf(member.received);
    const value = name === 'detail' ? withRecordedEnd(member.received, pair) : normalised(member, isCut);
    return [name, isSame ? member.recorded : value] as const;
  });
  return Array.isArray(received) ? entries.map(([, entry]) => entry) : Object.fromEntries(entries);
}

/** The detail of LeaseHeld also names an instant, which differs in every run. */
const withRecordedEnd = (text: unknown, { recorded, received }: Pair): unknown =>
  String(text).replace(Object(received).expiresAt, Object(recorded).expiresAt);

const members = ({ recorded, received }: Pair): [string, Pair][] =>
  (isScalar(received) ? [] : Object.entries(Object(received))).map(([name, member]) => [
    name,
    { recorded: Object(recorded)[name], received: member },
  ]);

const isScalar = (value: unknown) => value === null || typeof value !== 'object';
const kindOf = (value: unknown) => (value === null ? 'null' : typeof value);
