import { apiCompare, type Diff } from 'api-smart-diff';

/** A difference that can break a caller, as a changelog would name it. */
export interface BreakingChange {
  /** The call (`POST /v1/commits`), or the component (`Grant`), that differs. */
  subject: string;
  /** The field, parameter, status or value that differs; undefined where the whole call does. */
  member: string | undefined;
  /** For people: what is done where in the document. */
  detail: string;
}

type Document = Record<string, unknown>;

/** What in the later document can break a caller of the earlier one. */
export function breakingChanges(earlier: Document, later: Document): BreakingChange[] {
  // It resolves references in place.
  const [before, after] = [structuredClone(earlier), structuredClone(later)];
  const { diffs } = apiCompare(before, after);
  const changes = diffs
    .filter(
      (diff) =>
        (diff.type === 'breaking' && !isNewCode(diff) && diff.path.at(-1) !== 'description') || isRefusedNow(diff),
    )
    .map((diff) => {
      const path = diff.path.map(String);
      return { subject: subjectOf(path), member: memberOf(path, diff), detail: `${diff.action} ${path.join(' > ')}` };
    });
  changes.push(...missingNow(earlier, later));
  const byName = new Map(changes.map((change) => [`${change.subject} ${change.member}`, change]));
  return [...byName.values()];
}

/** The service refuses a field that it does not know, so one that is no longer documented is refused. */
function isRefusedNow({ action, path }: Diff): boolean {
  const inRequest = path.includes('requestBody') && path.at(-2) === 'properties';
  return action === 'remove' && (inRequest || path.at(-2) === 'parameters');
}

interface Schema {
  required?: string[];
  additionalProperties?: unknown;
  allOf?: Schema[];
}

const requiredIn = ({ required = [], allOf = [] }: Schema = {}): string[] => [
  ...required,
  ...allOf.flatMap((part) => requiredIn(part)),
];

/** What was always in an answer, and need not be any more. The comparison does not see that inside `allOf`. */
function missingNow(earlier: Document, later: Document): BreakingChange[] {
  const schemasOf = ({ components }: Document) => (components as { schemas: Record<string, Schema> }).schemas;
  const isAnswer = ({ additionalProperties }: Schema) => additionalProperties !== false;
  return Object.entries(schemasOf(earlier))
    .filter(([, schema]) => isAnswer(schema))
    .flatMap(([subject, schema]) => {
      const still = requiredIn(schemasOf(later)[subject]);
      const missing = requiredIn(schema).filter((member) => !still.includes(member));
      return missing.map((member) => ({ subject, member, detail: `${member} need not be in ${subject} any more` }));
    });
}

/** A caller takes an error code that it does not know by its status, which is why the policy lets codes be added. */
const isNewCode = ({ action, path }: Diff) => action === 'add' && path.slice(-4, -1).join() === 'properties,code,enum';

function subjectOf([part, second = '', third = '']: string[]): string {
  return part === 'paths' ? `${third.toUpperCase()} ${second}`.trim() : third || second;
}

/** A value of an enumeration, a parameter, a field, or a status: the innermost that the path names. */
function memberOf(path: string[], { action, before, after }: Diff): string | undefined {
  const inEnum = path.at(-2) === 'enum' || path.at(-2) === 'required';
  const value = action === 'add' ? after : before;
  if (inEnum && typeof value === 'string') return value;
  const parameters = path.indexOf('parameters');
  if (parameters > 0 && typeof value?.name === 'string') return value.name;
  const properties = path.lastIndexOf('properties');
  if (properties >= 0) return path[properties + 1];
  const responses = path.indexOf('responses');
  return responses >= 0 ? path[responses + 1] : undefined;
}

/**
 * The changes that no item of a changelog names. An item names a change by its member and, with it, by any call or
 * component in which that member changes.
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
