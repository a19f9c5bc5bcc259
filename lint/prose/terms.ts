/** Finds the terms of docs/glossary.md that a page uses without a link to the glossary: a part of `lint/prose/check.ts`. */
import { readFileSync } from 'node:fs';

/** Pages for readers of Holdfast. npm follows no relative link of a package; the front page explains each term that it uses. */
export const LINKS_TERMS =
  /^(docs\/(?!api\/|benchmarks\.md|glossary\.md).*|(?!client\/README|cli\/README).+\/README)\.md$/;

/** Everyday words, which pages use in their plain meaning too, so that a link would often mislead. */
const EVERYDAY = new Set([
  ...['key', 'lock', 'kind', 'limit', 'weight', 'mode', 'request', 'version', 'free', 'held', 'expired', 'active'],
  ...['previous', 'broken', 'formed', 'position', 'join', 'leave', 'wait', 'race', 'deadline', 'next', 'serve'],
  ...['transfer', 'notify', 'give-up', 'cancel', 'hint', 'task', 'target', 'exclusive', 'commit', 'head', 'publish'],
  ...[
    'report',
    'history',
    'mark',
    'claim',
    'alias',
    'quota',
    'once',
    'run',
    'done',
    'superseded',
    'guard',
    'reserve',
    'callback',
    'bound',
    'look',
  ],
]);

/** Forms of a term beside the plural and the past. */
const FORMS: Record<string, string> = {
  // Not with a name behind it, as CloudWatch's namespaces have.
  namespace: 'namespaces?(?!\\s\\s)',
  ttl: '(?-i:ttl)s?',
  fence: 'fences?|fencing tokens?',
  line: 'in line|line of waiters|line of (?:a|the) (?:lock|lease|pool|key)',
  withdraw: 'withdraw(?:s|n|als?)?',
  capability: 'capability|capabilities',
  'the-schedule': 'the schedule',
  'message-that-looks-again': 'messages? that looks? again',
  'clean-up': 'clean-ups?',
  'outcome-unknown': 'outcome (?:is |was )?unknown|unknown outcomes?',
};

const HAS_NO_TERMS = [
  /^ *(```|~~~)[\s\S]*?^ *\1/gm, // code
  /<!--[\s\S]*?-->|<[^>\n]+>/g, // comments and tags
  /^ *(#|\||>).*$/gm, // headings, tables and quotes
  /!?\[(?:[^[\]]|\[[^\]]*\])*\](?:\([^)]*\)|: .*)?/g, // links and pictures
  /(`+)[\s\S]*?\1/g, // names in a text
];

/** The prose of a page. Everything else becomes blanks, so that each place stays where it is. */
const proseOf = (markdown: string) =>
  HAS_NO_TERMS.reduce((text, pattern) => text.replace(pattern, (part) => part.replace(/[^\n]/g, ' ')), markdown);

/** The anchors of the glossary, those of several words first: a "grant window" is no grant. */
const anchors = [...readFileSync('docs/glossary.md', 'utf8').matchAll(/<a id="([\w-]+)">/g)]
  .map(([, anchor = '']) => anchor)
  .filter((anchor) => !EVERYDAY.has(anchor))
  .toSorted((one, other) => other.length - one.length);

interface Term {
  anchor: string;
  /** Where the page first uses the term, and the form of the term there. */
  at: number;
  used: string;
}

/** The terms that a page uses in its prose, and links nowhere on the page. */
export function unlinkedTerms(markdown: string): Term[] {
  let prose = proseOf(markdown);
  return anchors.flatMap((anchor) => {
    const form = FORMS[anchor] ?? `${anchor.replaceAll('-', '[- ]')}(?:s|es|d|ed)?`;
    const uses = [...prose.matchAll(new RegExp(`(?<![\\w-])(?:${form.replaceAll(' ', '\\s+')})(?![\\w-])`, 'gi'))];
    for (const { 0: used, index } of uses)
      prose = prose.slice(0, index) + ' '.repeat(used.length) + prose.slice(index + used.length);
    const [first] = uses;
    if (first === undefined || markdown.includes(`glossary.md#${anchor})`)) return [];
    return [{ anchor, at: first.index, used: first[0] }];
  });
}
