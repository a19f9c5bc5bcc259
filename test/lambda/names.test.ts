import { expect, it } from 'vitest';
import { namesIn } from '../../shared/lambda/stored-names.ts';
import { LEASE_LISTS } from '../../shared/locks/names.ts';

it.each<[string, object, object]>([
  ['a list', {}, { prefix: 'team-a/' }],
  ['a list by prefix', { prefix: 'x' }, { prefix: 'team-a/x' }],
  ['one record', { key: 'x' }, { key: 'team-a/x' }],
  ['one record beside a prefix', { key: 'x', prefix: 'team-b/' }, { key: 'team-a/x', prefix: 'team-a/team-b/' }],
  ['a key that is undefined', { key: undefined }, { key: undefined, prefix: 'team-a/' }],
  ['a key that is no text', { key: null, prefix: 'team-b/' }, { key: null, prefix: 'team-a/team-b/' }],
  ['a key that is a list', { key: ['x'] }, { key: ['x'], prefix: 'team-a/' }],
])('a request of a namespace for %s sees that namespace alone', (_, payload, expected) => {
  expect(namesIn(payload, LEASE_LISTS, 'team-a')).toEqual(expected);
});
