/**
 * Texts that people read, such as errors and reasons: words with blanks between them. An expression of DynamoDB has more than words, and a code or
 * the name of a field is one word. The texts are not part of any promise.
 */
const PROSE = /^(?!SET|REMOVE)(?=.*[a-z]{3})(?=.*\w \w)(?!.*(?:[:#][a-zA-Z]|[_=(]))[\w ,.;:'*/-]+$/;

/** @param {{ node: { type: string, value?: unknown, quasis?: { value: { raw: string } }[] } }} path */
function textOf({ node }) {
  if (node.type === 'StringLiteral') return String(node.value);
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.raw).join('x');
  return '';
}

/** A plugin of Stryker, which leaves out each mutant for which it gives a reason. */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'prose',
    value: { shouldIgnore: (path) => (PROSE.test(textOf(path)) ? 'a text for people' : undefined) },
  },
];
