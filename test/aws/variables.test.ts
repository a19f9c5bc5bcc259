import { expect, it } from 'vitest';
import { requiredString, wholeNumber } from '../../shared/aws/variables.ts';

it('a setting that is required is there, and not empty', () => {
  expect(requiredString('TABLE', { TABLE: 't' })).toBe('t');
  for (const env of [{}, { TABLE: '' }]) expect(() => requiredString('TABLE', env)).toThrow('TABLE is not set');
});

it('a setting that is a number is whole, or not given at all', () => {
  expect(wholeNumber('MS', 7, {})).toBe(7);
  for (const [text, value] of [
    ['0', 0],
    ['20', 20],
    ['999999999999999', 999_999_999_999_999],
  ] as const)
    expect(wholeNumber('MS', 7, { MS: text })).toBe(value);
  for (const text of ['', ' 1', '1 ', '-1', '1.5', '20s', 's20', '1000000000000000'])
    expect(() => wholeNumber('MS', 7, { MS: text })).toThrow(`MS must be a whole number, not '${text}'`);
});
