import { apiCompare, type Diff } from 'api-smart-diff';

/** A difference that can break a caller, in the words of a changelog. */
export interface BreakingChange {
  /** The call (`POST /v1/commits`), or the component (`Grant`), that differs. */
  subject: string;
  /** The field, parameter, status or value that differs. Undefined if the whole call differs. */
  member: string | undefined;
  /** The change and its place in the document, for people. */
  detail: string;
}

type Document = Record<string, unknown>;

/** Finds the changes that can break callers of the earlier document. */
export function breakingChanges(earlier: Document, later: Document): BreakingChange[] {
  // The comparison resolves references in place, so it works on copies.
  const [before, after] = [withoutDescriptions(earlier), withoutDescriptions(later)];
  const diffs = apiCompare(before, after).diffs.flatMap(byTrigger);
  const uses = [usesOf(earlier), usesOf(later)];
  const changes = diffs
    .filter((diff) => isBreaking(diff, { use: useOf(diff.path.map(String), uses), diffs }))
    .map((diff) => {
      const path = diff.path.map(String);
      return { subject: subjectOf(path), member: memberOf(path, diff), detail: `${diff.action} ${path.join(' > ')}` };
    });
  changes.push(...missingNow(earlier, later));
  const byName = new Map(changes.map((change) => [`${change.subject} ${change.member}`, change]));
  return [...byName.values()];
}

/** The comparison mistakes a new description beside `anyOf` for a removal of all choices, so we compare without descriptions. */
function withoutDescriptions<Part>(part: Part): Part {
  if (Array.isArray(part)) return part.map(withoutDescriptions) as Part;
  if (typeof part !== 'object' || part === null) return part;
  const members = Object.entries(part).filter(([name, member]) => name !== 'description' || typeof member !== 'string');
  return Object.fromEntries(members.map(([name, member]) => [name, withoutDescriptions(member)])) as Part;
}

/** The comparison reports a new `dependentRequired` as one difference. Splits it by the field that needs others. */
function byTrigger(diff: Diff): Diff[] {
  if (diff.action !== 'add' || diff.path.at(-1) !== 'dependentRequired') return [diff];
  return Object.entries(diff.after).map(([field, after]) => ({ ...diff, path: [...diff.path, field], after }));
}

/** Whether callers send a part of the document, receive it, or both. */
interface Use {
  isSent: boolean;
  isReceived: boolean;
}

/** The comparison treats every component as part of a request, so its verdicts on answers must be corrected. */
function isBreaking(diff: Diff, { use, diffs }: { use: Use; diffs: Diff[] }): boolean {
  if (isFieldGone(diff) || (use.isSent && isDependentNow(diff, diffs))) return true;
  if (isNewCode(diff)) return false;
  if (use.isReceived && !use.isSent && isPromisedNow(diff)) return false;
  return diff.type === 'breaking';
}

/** Callers may read any field of an answer, and the service refuses unknown fields of a request: a field that is gone breaks either. */
const isFieldGone = ({ action, path }: Diff) =>
  action === 'remove' && (path.at(-2) === 'properties' || path.at(-2) === 'parameters');

/** Whether a field now needs others. A new field may, because no earlier caller sends it. */
function isDependentNow({ action, path }: Diff, diffs: Diff[]): boolean {
  const keyword = path.lastIndexOf('dependentRequired');
  if (keyword < 0 || action === 'remove') return false;
  const field = [...path.slice(0, keyword), 'properties', path[keyword + 1]].join();
  return !diffs.some((other) => other.action === 'add' && other.path.join() === field);
}

/** A field of an answer that is new, or that is now always there. */
const isPromisedNow = ({ action, path }: Diff) =>
  action === 'add' && (path.at(-2) === 'properties' || path.at(-2) === 'required');

interface Operation {
  parameters?: unknown;
  requestBody?: unknown;
  responses?: unknown;
}

/** The components that requests and answers refer to, each as `schemas/Grant`. */
interface Uses {
  sent: Set<string>;
  received: Set<string>;
}

function usesOf(document: Document): Uses {
  const paths = document.paths as Record<string, Operation & Record<string, Operation>>;
  // Parameters may also stand next to the methods.
  const operations = Object.values(paths).flatMap((path): Operation[] => [path, ...Object.values(path)]);
  const sent = operations.map(({ parameters, requestBody }) => [parameters, requestBody]);
  const received = operations.map(({ responses }) => responses);
  return { sent: referredTo(sent, document), received: referredTo(received, document) };
}

function referredTo(part: unknown, document: Document, found = new Set<string>()): Set<string> {
  if (typeof part !== 'object' || part === null) return found;
  const name = '$ref' in part ? String(part.$ref).replace('#/components/', '') : undefined;
  if (name !== undefined && !found.has(name)) {
    found.add(name);
    const [kind = '', id = ''] = name.split('/');
    referredTo((document.components as Record<string, Document>)[kind]?.[id], document, found);
  }
  for (const inner of Object.values(part)) referredTo(inner, document, found);
  return found;
}

function useOf([part, second, third, fourth]: string[], uses: Uses[]): Use {
  const component = `${second}/${third}`;
  if (part === 'components') {
    return {
      isSent: uses.some(({ sent }) => sent.has(component)),
      isReceived: uses.some(({ received }) => received.has(component)),
    };
  }
  const isReceived = fourth === 'responses';
  return { isSent: !isReceived, isReceived };
}

interface Schema {
  required?: string[];
  allOf?: Schema[];
}

const requiredIn = ({ required = [], allOf = [] }: Schema = {}): string[] => [
  ...required,
  ...allOf.flatMap((part) => requiredIn(part)),
];

/** Fields that were always in an answer and are now optional. The comparison misses them inside `allOf`. */
function missingNow(earlier: Document, later: Document): BreakingChange[] {
  const schemasOf = ({ components }: Document) => (components as { schemas: Record<string, Schema> }).schemas;
  const { received } = usesOf(earlier);
  return Object.entries(schemasOf(earlier))
    .filter(([subject]) => received.has(`schemas/${subject}`))
    .flatMap(([subject, schema]) => {
      const still = requiredIn(schemasOf(later)[subject]);
      const missing = requiredIn(schema).filter((member) => !still.includes(member));
      return missing.map((member) => ({ subject, member, detail: `${member} need not be in ${subject} any more` }));
    });
}

/** Where error codes stand: in the list of all codes, and in the errors of a call with one status. */
const CODES = ['properties,code,enum', 'application/problem+json,schema,oneOf'];

/** Callers handle an unknown error code by its status, so codes may be added. */
const isNewCode = ({ action, path }: Diff) => action === 'add' && CODES.includes(path.slice(-4, -1).join());

function subjectOf([part, second = '', third = '']: string[]): string {
  return part === 'paths' ? `${third.toUpperCase()} ${second}`.trim() : third || second;
}

/** The innermost thing on the path that has a name: a value of an enumeration, a parameter, a field or a status. */
function memberOf(path: string[], { action, before, after }: Diff): string | undefined {
  const inEnum = path.at(-2) === 'enum' || path.at(-2) === 'required';
  const value = action === 'add' ? after : before;
  if (inEnum && typeof value === 'string') return value;
  const parameters = path.indexOf('parameters');
  if (parameters > 0 && typeof value?.name === 'string') return value.name;
  const dependent = path.lastIndexOf('dependentRequired');
  if (dependent >= 0) return path[dependent + 1];
  const properties = path.lastIndexOf('properties');
  if (properties >= 0) return path[properties + 1];
  const responses = path.indexOf('responses');
  return responses >= 0 ? path[responses + 1] : undefined;
}

/**
 * The changes that the changelog does not name. An item names a change by its member, together with any call or component in
 * which the member changes.
 */
export function unnamed(changes: BreakingChange[], changelog: string): BreakingChange[] {
  const items = changelog.split(/\n(?=- |#)/).filter((item) => item.startsWith('- '));
  return [...Map.groupBy(changes, ({ member }) => member)].flatMap(([member, group]) => {
    const subjects = group.map(({ subject }) => subject);
    const names = (item: string, subject: string) =>
      item.includes(`\`${subject}\``) && (member === undefined || item.includes(`\`${member}\``));
    const isNamed = (change: BreakingChange) =>
      items.some((item) =>
        (member === undefined ? [change.subject] : subjects).some((subject) => names(item, subject)),
      );
    return group.filter((change) => !isNamed(change));
  });
}
