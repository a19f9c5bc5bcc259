import type { Tag } from '@aws-sdk/client-cloudformation';
import type { CloudFormationTemplate, TemplateResource } from '../infrastructure/cloudformation.ts';
import { evaluate } from '../infrastructure/evaluate.ts';
import type { Values } from './values.ts';

/** A template with the values of its parameters. */
export interface Configured {
  template: CloudFormationTemplate;
  values: Values;
}

/** Parameters that the command itself sets. */
const OF_THE_COMMAND = ['allowChange', 'codeBucket', 'stage'];

/** @param from undefined for a new stack, whose values are compared with the defaults @returns a line for each parameter whose value changes */
export function changedParameters(from: Configured | undefined, to: Configured): string[] {
  // A version without a parameter counts as if the parameter had its default.
  const defaultOf = (of: Configured, name: string) =>
    String((of.template.Parameters?.[name] ?? to.template.Parameters?.[name])?.Default ?? '');
  const lines = Object.keys(to.template.Parameters ?? {}).flatMap((name) => {
    const after = to.values[name] ?? defaultOf(to, name);
    const before = from?.values[name] ?? defaultOf(from ?? to, name);
    if (before === after || OF_THE_COMMAND.includes(name)) return [];
    return [from ? `parameter ${name}: '${before}' -> '${after}'` : `parameter ${name}: '${after}'`];
  });
  const dropped = Object.entries(from?.values ?? {}).flatMap(([name, value]) =>
    name in (to.template.Parameters ?? {}) || (from && value === defaultOf(from, name)) || name === 'allowChange'
      ? []
      : [`parameter ${name}: '${value}' is dropped, because this release does not have the parameter`],
  );
  return [...lines, ...dropped];
}

/** @returns a line for each tag of the stack that changes */
export function changedTags(from: Tag[], to: Tag[]): string[] {
  const before = new Map(from.map(({ Key, Value }) => [Key, Value]));
  const after = new Map(to.map(({ Key, Value }) => [Key, Value]));
  const said = (value: string | undefined) => (value === undefined ? 'none' : `'${value}'`);
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((key) => before.get(key) !== after.get(key))
    .map((key) => `tag ${key}: ${said(before.get(key))} -> ${said(after.get(key))}`);
}

export interface ResourceChange {
  action: 'Add' | 'Modify' | 'Remove';
  type: string;
  id: string;
}

/**
 * What a deployment would do to the resources, as far as the templates show it. Only CloudFormation itself knows which resources it would
 * replace.
 */
export function changedResources(from: Configured | undefined, to: Configured): ResourceChange[] {
  const before = from ? evaluate(from.template, from.values).Resources : {};
  const after = evaluate(to.template, to.values).Resources;
  const of = (action: ResourceChange['action'], id: string, { Type: type }: TemplateResource) => [{ action, type, id }];
  return [
    ...Object.entries(after).flatMap(([id, resource]) => {
      const former = before[id];
      if (!former) return of('Add', id, resource);
      return contentOf(former) === contentOf(resource) ? [] : of('Modify', id, resource);
    }),
    ...Object.entries(before).flatMap(([id, resource]) => (id in after ? [] : of('Remove', id, resource))),
  ];
}

/**
 * The content that counts as a change. CloudFormation ignores another order of creation. The version of a zip is not known before the upload, but
 * the name of the zip already changes with its content.
 */
const contentOf = ({ DependsOn: _, ...content }: TemplateResource): string =>
  JSON.stringify(content, (key, part) =>
    key === 'S3ObjectVersion'
      ? undefined
      : part && typeof part === 'object' && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
        : part,
  );
