/** `45 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. @param ms rounded up, so that what has not ended never reads 0 s */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const [big, of, small, per] = unitOf(seconds);
  const rest = Math.floor((seconds % of) / per);
  return `${Math.floor(seconds / of)} ${big}${rest ? ` ${rest} ${small}` : ''}`;
}

type Unit = [name: string, seconds: number, smaller: string, secondsOfSmaller: number];

const unitOf = (seconds: number): Unit =>
  seconds < 3600 ? ['min', 60, 's', 1] : seconds < 86_400 ? ['h', 3600, 'min', 60] : ['d', 86_400, 'h', 3600];

/** On the clock of the machine that shows it: the time, and the day where that is another one. */
export function clockTime(instant: string | number, now = Date.now()): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return String(instant);
  const sameDay = at.toDateString() === new Date(now).toDateString();
  return at.toLocaleString(undefined, {
    ...(!sameDay && { year: 'numeric', month: 'short', day: 'numeric' }),
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
}

/** The weight of a permit that has the pool alone. */
const EXCLUSIVE_WEIGHT = 1_000_000;

/** How much of a pool is in use: `3 of 5`. */
export const usedText = ({ used = 0, limit }: { used?: number; limit?: number | null }): string => {
  if (used >= EXCLUSIVE_WEIGHT) return 'all';
  return limit ? `${used} of ${limit}` : String(used);
};

/** `1 task`, `3 tasks`. */
export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;

const KINDS: Record<string, string> = { commit: 'commit record', firstSight: 'commit note' };

/** What one record of a kind is called. */
export const kindName = (kind: string): string =>
  KINDS[kind] ?? kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const SPARED: Record<string, string> = {
  tooYoung: 'too young',
  ageUnknown: 'of unknown age',
  neverDeletable: 'never deletable by TTL, and not asked for',
  leftToQueue: 'left to the queue',
  partOfRecord: 'part of a ledger',
  fenceAhead: 'with a fence ahead of the clock',
  unrecognisable: 'not recognisable',
  changed: 'changed since the report',
  gone: 'gone already',
};

export const spareReason = (why: string): string => SPARED[why] ?? why;

/** Where the console of AWS shows an execution, or undefined where the text is no ARN of one. */
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
