import type { FaultKind } from '../histories/faults.ts';
import type { Ledger } from './ledger.ts';

/** The document that shows the ledger, between the markers. */
export const DOCUMENT = 'docs/safety.md';
const MARKERS = /(<!-- campaign: .*? -->\n\n)[\s\S]*?(\n\n<!-- end of campaign -->)/;

/** What each kind of fault is, in the order in which a person would look for it. */
const FAULTS: Record<FaultKind, string> = {
  lostBefore: 'a request was lost before it arrived',
  lostReply: 'a request landed, and its answer was lost',
  slow: 'an answer came 1 to 4 s late, and the SDK tried again',
  delayed: 'a request was delayed, by up to 40 s',
  duplicated: 'a request was delivered twice, the second time up to a minute later',
  throttled: 'a request was throttled',
  error500: 'a request was answered 500, landed or not',
  transactionConflict: 'a transaction conflict',
  s3Conflict: "S3's 409 ConditionalRequestConflict",
  reset: 'a connection was reset, landed or not',
  freeze: 'a function stood still',
  death: 'a function died',
  callDuplicated: 'a call was delivered twice',
  callerDeath: 'a caller died',
  callerFreeze: 'a caller stood still',
  clockOffset: 'a clock was off',
  clockDrift: 'a clock gained or lost',
  clockStep: 'a clock was stepped',
  clockBeyondBound: 'a history with clocks beyond the bound',
  foreignDeath: 'a foreign client stalled, died or left its lease',
  executionDeath: 'an execution died',
  eventLost: 'the event of its end was lost',
  eventLate: 'the event of its end came late',
  eventTwice: 'the event of its end came twice',
  redriven: 'an execution was redriven',
  stopLost: 'nobody could tell whether a target was stopped',
  junkTicket: 'a caller parked a token that no task has',
};

const figure = (count: number) => count.toLocaleString('en-US');

/** The ledger in Markdown: what was played of each commit, and how often each kind of fault struck in all. */
export function campaignBlock(ledger: Ledger): string {
  const sum = (of: (chapter: Ledger[number]) => number) => ledger.reduce((total, chapter) => total + of(chapter), 0);
  const struck = (kind: FaultKind) => sum(({ faults }) => faults[kind] ?? 0);
  const broken = sum(({ broken }) => broken.length);
  const chapters = ledger.map(({ commit, only, seeds, histories, operations, permits = 0, beyondBound, broken }) =>
    row([
      commit,
      only ? only.join(', ') : 'all',
      seeds.map(([from, to]) => `${from}-${to}`).join(', '),
      figure(histories),
      figure(beyondBound),
      figure(operations),
      figure(permits),
      broken.length === 0 ? 'none' : broken.map(({ seed }) => seed).join(', '),
    ]),
  );
  return [
    `${figure(sum(({ histories }) => histories))} histories, ${figure(sum(({ beyondBound }) => beyondBound))} of them with clocks beyond the bound; ` +
      `${figure(sum(({ operations }) => operations))} calls and ${figure(sum(({ permits = 0 }) => permits))} permits. A promise was broken in ${broken}.`,
    '',
    row(['commit', 'capabilities', 'seeds', 'histories', 'beyond the bound', 'calls', 'permits', 'broken']),
    row(['---', '---', '---', '--:', '--:', '--:', '--:', '---']),
    ...chapters,
    '',
    row(['fault', 'how often']),
    row(['---', '--:']),
    ...Object.entries(FAULTS).map(([kind, words]) => row([words, figure(struck(kind as FaultKind))])),
  ].join('\n');
}

const row = (cells: (string | number)[]) => `| ${cells.join(' | ')} |`;

/** The document as the ledger would have it. @throws Error when its markers are gone */
export function withCampaign(document: string, ledger: Ledger): string {
  if (!MARKERS.test(document))
    throw new Error(`${DOCUMENT} has no place for the campaign: <!-- campaign: ... --> to <!-- end of campaign -->`);
  return document.replace(MARKERS, (_, begin, end) => `${begin}${campaignBlock(ledger)}${end}`);
}
