/**
 * What people read, in errors and reasons: words with blanks between them. An expression of DynamoDB has more than words, and a code or
 * the name of a field is one word. No promise is made of these texts.
 */
const PROSE = /^(?!SET|REMOVE)(?=.*[a-z]{3})(?=.*\w \w)(?!.*(?:[:#][a-zA-Z]|[_=(]))[\w ,.;:'*/-]+$/;

/** @param {{ node: { type: string, value?: unknown, quasis?: { value: { raw: string } }[] } }} path */
function textOf({ node }) {
  if (node.type === 'StringLiteral') return String(node.value);
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.raw).join('x');
  return '';
}

/** For Stryker, which leaves out what a plugin of this kind gives a reason for. */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'prose',
    value: { shouldIgnore: (path) => (PROSE.test(textOf(path)) ? 'a text for people' : undefined) },
  },
];
