import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mutant } from './stryker.ts';

/** The folders of shared/ whose files are mutated. */
export const CAPABILITIES = ['aws', 'commits', 'expiry', 'locks', 'nameservice', 'once', 'rates'] as const;

/** The folder of the report of a run. Git ignores the folder, and a release attaches the files. */
export const REPORT = 'verification/mutation-score/report';

/** A mutant that no assertion caught. */
export interface Open {
  /** `Survived`: tests ran it and passed. `NoCoverage`: no test runs it. `Timeout`: a test waited for too long. */
  status: 'Survived' | 'NoCoverage' | 'Timeout';
  mutator: string;
  /** `line:column-line:column`, all from 1. */
  at: string;
  original: string;
  replacement: string;
}

/** The outcomes of the mutants of a file. */
export interface FileReport {
  /** The hash of the file at that time. */
  sha256: string;
  caught: number;
  /** How many mutants of texts for people were left out. */
  leftOut: number;
  open: Open[];
}

export type Report = Record<string, FileReport>;

/** A survivor that does not change observable behaviour: anywhere in the file, or only in one `line`. */
interface Equivalent extends Pick<Open, 'mutator' | 'original' | 'replacement'> {
  file: string;
  /** The line in which the mutant begins, if the same text on another line of the file makes a difference. */
  line?: string;
  /** Which occurrence of the text in such lines it is, from 1, if another occurrence makes a difference. */
  nth?: number;
  reason: string;
}

const EQUIVALENT_FILE = join(import.meta.dirname, 'equivalent.json');
const EQUIVALENT = JSON.parse(readFileSync(EQUIVALENT_FILE, 'utf8')) as Equivalent[];

const fileOf = (name: string) => join(REPORT, name);

/** The report of earlier runs on this machine, if there was one. */
export async function readReport(): Promise<Report> {
  if (!existsSync(fileOf('report.json'))) return {};
  return JSON.parse(await readFile(fileOf('report.json'), 'utf8'));
}

const isInSource = ({ file, original, line }: Equivalent): boolean => {
  if (!existsSync(file)) return false;
  const lines = linesOf(file).map((one) => one.trim());
  return lines.join(' ').includes(original) && (line === undefined || lines.includes(line));
};

/** Deletes the equivalent survivors whose text has left the source. @returns the deleted entries, as `file: text` */
export async function dropGone(): Promise<string[]> {
  const gone = EQUIVALENT.filter((one) => !isInSource(one));
  if (gone.length > 0) {
    const kept = EQUIVALENT.filter((one) => !gone.includes(one));
    await writeFile(EQUIVALENT_FILE, `${JSON.stringify(kept, undefined, 2)}\n`);
  }
  return gone.map(({ file, original }) => `${file}: ${original}`);
}

/** Writes the report and its table. */
export async function writeReport(report: Report, files: string[]): Promise<void> {
  const kept = Object.fromEntries(files.flatMap((file) => (report[file] ? [[file, report[file]]] : [])));
  await mkdir(REPORT, { recursive: true });
  await writeFile(fileOf('report.json'), `${JSON.stringify(kept, undefined, 2)}\n`);
  await writeFile(fileOf('report.md'), markdown(kept, files));
}

export const digestOf = (file: string): string =>
  createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 16);

/** @throws Error if a mutant has no outcome */
export function reportOf(file: string, mutants: Mutant[]): FileReport {
  const source = readFileSync(file, 'utf8');
  const unknown = mutants.find(({ status }) => ['RuntimeError', 'CompileError', 'Pending'].includes(status));
  if (unknown) throw new Error(`${file}:${placeOf(unknown)}: ${unknown.mutatorName} ended with ${unknown.status}`);
  const count = (status: Mutant['status']) => mutants.filter((mutant) => mutant.status === status).length;
  const open = mutants.flatMap((mutant) => {
    const status = openStatus(mutant);
    if (!status) return [];
    const { mutatorName: mutator, replacement } = mutant;
    return { status, mutator, at: placeOf(mutant), original: textAt(source, mutant), replacement };
  });
  return {
    sha256: digestOf(file),
    caught: count('Killed') + count('Timeout') - timeouts(open),
    leftOut: count('Ignored'),
    open,
  };
}

/** The message of a test that waited for too long. */
const WAITED = /^(Test|Hook) timed out in/;

/** Undefined if an assertion caught the mutant, or if it is left out. */
export function openStatus({ status, statusReason }: Mutant): Open['status'] | undefined {
  if (status === 'Survived' || status === 'NoCoverage' || status === 'Timeout') return status;
  return status === 'Killed' && WAITED.test(statusReason ?? '') ? 'Timeout' : undefined;
}

const timeouts = (open: Open[]): number => open.filter(({ status }) => status === 'Timeout').length;

export const placeOf = ({ location: { start, end } }: Mutant): string =>
  `${start.line}:${start.column}-${end.line}:${end.column}`;

function textAt(source: string, { location: { start, end } }: Mutant): string {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const last = lines.length - 1;
  lines[last] = (lines[last] ?? '').slice(0, end.column - 1);
  lines[0] = (lines[0] ?? '').slice(start.column - 1);
  return lines.map((line) => line.trim()).join(' ');
}

export const isEquivalent = (file: string, survivor: Open): boolean =>
  survivor.status === 'Survived' &&
  EQUIVALENT.some(
    (one) =>
      one.file === file &&
      one.mutator === survivor.mutator &&
      one.original === survivor.original &&
      one.replacement === survivor.replacement &&
      (one.line === undefined || one.line === lineOf(file, survivor)) &&
      (one.nth === undefined || one.nth === nthOf(file, survivor)),
  );

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n');

const lineOf = (file: string, { at }: Open): string | undefined => linesOf(file)[Number.parseInt(at, 10) - 1]?.trim();

/** Which of the places it is, from 1, at which its original stands in lines like its own. */
function nthOf(file: string, survivor: Open): number {
  const [line = 0, column = 0] = survivor.at.split(/[:-]/).map(Number);
  const lines = linesOf(file);
  const alike = lines.slice(0, line - 1).filter((one) => one.trim() === lineOf(file, survivor));
  return [...alike, lines[line - 1]?.slice(0, column - 1)].join('\n').split(survivor.original).length;
}

function markdown(report: Report, files: string[]): string {
  const rows = Object.entries(report).map(([file, { sha256, caught, leftOut, open }]) => {
    const others = open.filter((one) => !isEquivalent(file, one));
    const of = (status: Open['status']) => others.filter((one) => one.status === status).length;
    const stale = sha256 === digestOf(file) ? '' : ' (changed since)';
    const equivalent = open.length - others.length;
    return {
      name: `${file}${stale}`,
      counts: [caught, of('Timeout'), of('Survived'), of('NoCoverage'), equivalent, leftOut],
    };
  });
  const capability = (folder: string) => sum(folder, (name) => name.startsWith(`shared/${folder}/`));
  const sum = (name: string, isIn: (name: string) => boolean) => {
    const of = rows.filter((row) => isIn(row.name));
    return {
      name,
      counts: [0, 1, 2, 3, 4, 5].map((at) => of.reduce((total, { counts }) => total + (counts[at] ?? 0), 0)),
    };
  };
  const line = ({ name, counts: [caught = 0, timedOut = 0, survived = 0, ...rest] }: (typeof rows)[number]) => {
    const all = caught + timedOut + survived;
    const share = all === 0 ? '-' : `${((100 * (caught + timedOut)) / all).toFixed(1)} %`;
    return `| ${[name, caught, timedOut, survived, ...rest, share].join(' | ')} |`;
  };
  return [
    '# Mutation score',
    '',
    'Written by `npm run verify -- mutation-score`. The README of `verification/mutation-score` explains the columns.',
    '',
    '| | caught | timed out | survived | run by no test | equivalent | left out | score |',
    '|---|---|---|---|---|---|---|---|',
    ...CAPABILITIES.map(capability).map(line),
    line(sum('all', () => true)),
    ...rows.map(line),
    '',
    `${rows.length} of ${files.length} files have been run. The others are not in the table.`,
    '',
  ].join('\n');
}
