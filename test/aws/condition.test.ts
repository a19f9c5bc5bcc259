import { describe, expect, it } from 'vitest';
import { integer, text } from '../../shared/aws/attributes.ts';
import { all, any, conditionFields, not } from '../../shared/aws/condition.ts';

const isThere = { expression: 'attribute_exists(#path)', names: { '#path': 'path' } };
const isSeen = { expression: 'version = :seen', values: { ':seen': text('one') } };

describe('a condition', () => {
  it('a condition has the names and values of all its parts', () => {
    expect(all(isThere, any(isSeen, not(isThere)))).toEqual({
      expression: '(attribute_exists(#path)) AND ((version = :seen) OR (NOT (attribute_exists(#path))))',
      names: { '#path': 'path' },
      values: { ':seen': text('one') },
    });
  });

  it('a condition of one part is that part, because DynamoDB refuses doubled parentheses', () => {
    expect(all(isSeen)).toEqual(isSeen);
    expect(any(isThere)).toEqual(isThere);
  });

  it('a condition becomes the fields of a command, with what its other expressions name', () => {
    expect(conditionFields(isSeen, { values: { ':now': integer(5) } })).toEqual({
      ConditionExpression: 'version = :seen',
      ExpressionAttributeValues: { ':seen': text('one'), ':now': integer(5) },
    });
  });

  it('a condition refuses one placeholder for two values', () => {
    const another = { expression: 'fence = :seen', values: { ':seen': integer(1) } };
    expect(() => all(isSeen, another)).toThrow(':seen stands for two things');
    expect(() => conditionFields(isSeen, { values: { ':seen': text('two') } })).toThrow(':seen stands for two things');
    expect(all(isSeen, isSeen).values).toEqual(isSeen.values);
  });
});
