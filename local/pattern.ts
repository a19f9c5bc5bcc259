import type { Pattern } from '../infrastructure/read-events.ts';

/**
 * True if an event matches an EventBridge pattern of exact values, `prefix`, `suffix`, `exists` and `anything-but`.
 * @throws Error that names a comparison that the local stack does not support
 */
export function matches(pattern: Pattern, event: Record<string, unknown>): boolean {
  return Object.entries(pattern).every(([field, expected]) => {
    const value = event[field];
    if (!Array.isArray(expected)) return typeof value === 'object' && value !== null && matches(expected, { ...value });
    return expected.some((one) => matchesValue(one, value));
  });
}

function matchesValue(expected: unknown, value: unknown): boolean {
  if (typeof expected !== 'object' || expected === null) return [value].flat().includes(expected);
  const [[comparison, operand] = []] = Object.entries(expected);
  const texts = [value].flat().filter((one) => typeof one === 'string');
  switch (comparison) {
    case 'prefix':
      return texts.some((text) => text.startsWith(String(operand)));
    case 'suffix':
      return texts.some((text) => text.endsWith(String(operand)));
    case 'exists':
      return (value !== undefined) === operand;
    case 'anything-but':
      return value !== undefined && ![operand].flat().includes(value);
    default:
      throw new Error(`the local stack does not support the comparison ${comparison} of event patterns`);
  }
}
