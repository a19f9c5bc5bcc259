import type { Cap, RateKey } from './service.ts';

/** `45 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. @param ms rounded up, so that the text is `0 s` only at the end */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const [unit, unitSeconds, smallerUnit, smallerSeconds] = unitOf(seconds);
  const rest = Math.floor((seconds % unitSeconds) / smallerSeconds);
  return `${Math.floor(seconds / unitSeconds)} ${unit}${rest ? ` ${rest} ${smallerUnit}` : ''}`;
}

type Unit = [unit: string, unitSeconds: number, smallerUnit: string, smallerSeconds: number];

const unitOf = (seconds: number): Unit =>
  seconds < 3600 ? ['min', 60, 's', 1] : seconds < 86_400 ? ['h', 3600, 'min', 60] : ['d', 86_400, 'h', 3600];

const ZONE = 'holdfast-zone';

/** The time zone of the page: UTC if the reader has chosen UTC, and otherwise undefined, for the zone of the browser. */
const zone = (): 'UTC' | undefined => (localStorage.getItem(ZONE) === null ? undefined : 'UTC');

/** Changes from the zone of the browser to UTC, and back. */
export function changeZone(): void {
  if (zone()) localStorage.removeItem(ZONE);
  else localStorage.setItem(ZONE, 'UTC');
}

/** The name of the zone, for example `Europe/Berlin`. */
export const zoneName = (): string => zone() ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Formats to reuse: making one takes a third of a millisecond, and a list shows hundreds of instants. */
const formats: Record<string, Intl.DateTimeFormat> = {};

/** Day and time in the zone of the page, with the year if it is not the present one. @param showsZone true to add the zone, which the head of the page shows too */
export function clockTime(instant: string | number, { showsZone = false, now = Date.now() } = {}): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return String(instant);
  const isThisYear = at.getUTCFullYear() === new Date(now).getUTCFullYear();
  const wanted = `${zone()},${showsZone},${isThisYear}`;
  formats[wanted] ??= new Intl.DateTimeFormat(undefined, {
    ...(!isThisYear && { year: 'numeric' }),
    ...(showsZone && { timeZoneName: 'short' }),
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone: zone(),
  });
  return formats[wanted].format(at);
}

/** The state of a lease, for people. A lease is `ending` if its holder was asked to stop and still holds it. */
export const stateText = ({ state, ending }: { state: string; ending: boolean }): string =>
  state === 'held' && ending ? 'ending' : state;

/** Who capped or paused something, since when and until when. */
export const capText = ({ by, since, until }: Cap): string =>
  `by ${by ?? 'an unknown operator'} since ${clockTime(since)} until ${until ? clockTime(until) : 'it is lifted'}`;

/** Rates as they are written on a command line: `50/1m`, or `tokens:100000/1m`. */
export const ratesText = (rates: RateKey['rates']): string =>
  rates.map(({ name, limit, per }) => `${name === 'requests' ? '' : `${name}:`}${limit}/${per}`).join(', ');

/** The ARN of a Step Functions execution. Its end is the name of the state machine and the name of the execution. */
const EXECUTION = /^arn:[\w-]+:states:[\w-]*:\d*:(?:execution|express):(.+)$/;

/** The name of a holder, for people. Of an execution, only the end of its ARN is shown: `machine:run-42`. */
export const nameOf = (holder: string): string => EXECUTION.exec(holder)?.[1] ?? holder;

/** True if permits are held, so that several callers may hold the key at once. */
export const isShared = ({ limit, holders }: { limit: number | null; holders: number }): boolean =>
  limit !== null || holders > 1;

/** How much of a limit is in use: `3 of 5`. */
export const usedText = ({ used, limit }: { used: number; limit: number | null }): string =>
  limit === null ? String(used) : `${used} of ${limit}`;

/** How much of a limit is in use, and the cap of an operator: `3 of 5, cap 3`. */
export const usedAndCapText = ({ cap, ...row }: { used: number; limit: number | null; cap?: Cap }): string =>
  `${usedText(row)}${cap?.limit ? `, cap ${cap.limit}` : ''}`;

/** `1 task`, `3 tasks`, `3 aliases`. */
export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : noun.endsWith('s') ? 'es' : 's'}`;

const KINDS: Record<string, string> = { commit: 'commit record', firstSight: 'commit note' };

/** What a record of a kind is called. */
export const kindName = (kind: string): string =>
  KINDS[kind] ?? kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const SPARED: Record<string, string> = {
  tooYoung: 'too young',
  ageUnknown: 'of unknown age',
  neverDeletable: 'never deletable by TTL, and not asked for',
  leftToQueue: 'left to the line',
  partOfRecord: 'part of a ledger',
  fenceAhead: 'with a fence ahead of the clock',
  unrecognisable: 'not recognisable',
  changed: 'changed since the report',
  gone: 'gone already',
};

export const spareReason = (why: string): string => SPARED[why] ?? why;

/** The page of an execution in the AWS console. Undefined if the text is not the ARN of an execution. */
export function consoleLink(arn: string): string | undefined {
  const [, partition = '', region] = /^arn:([\w-]+):states:([\w-]+):\d{12}:execution:/.exec(arn) ?? [];
  const domain = {
    aws: 'console.aws.amazon.com',
    'aws-cn': 'console.amazonaws.cn',
    'aws-us-gov': 'console.amazonaws-us-gov.com',
  }[partition];
  if (!domain || !region) return undefined;
  return `https://${region}.${domain}/states/home?region=${region}#/v2/executions/details/${encodeURIComponent(arn)}`;
}
