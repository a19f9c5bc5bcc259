import { expect, it } from 'vitest';
import { LINKS_TERMS, unlinkedTerms } from '../../lint/prose/terms.ts';

it.each([
  ['The next holder has a higher fence.', ['holder', 'fence']],
  ['A [holder](glossary.md#holder) has a lease, and later holders too.', ['lease']],
  ['A grant from the line lasts for the grant window.', ['grant-window', 'grant']],
  ['Callers wait in\nline, behind a line of text.', ['line']],
  ['# Leases\n\n| lease |\n\n```sh\nlease\n```\n\n`lease` and [the lease](leases.md)', []],
  ['The metrics are in the namespace `Holdfast`, and keys in a namespace.', ['namespace']],
])('The lint finds each term of the glossary that a page uses without a link: %j', (page, terms) => {
  expect(unlinkedTerms(page).map(({ anchor }) => anchor)).toEqual(terms);
});

it('Pages of docs/ and READMEs of folders link terms, but not what is generated or shown by npm', () => {
  const files = ['docs/pools.md', 'docs/protocols/leases.md', 'shared/line/README.md'];
  const others = ['README.md', 'CHANGELOG.md', 'docs/glossary.md', 'docs/api/leases.md', 'client/README.md'];
  expect([...files, ...others].filter((file) => LINKS_TERMS.test(file))).toEqual(files);
});
