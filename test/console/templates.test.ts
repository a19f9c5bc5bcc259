import htm from 'htm';
import { expect, it } from 'vitest';
import { compileTemplates } from '../../console/templates.ts';

type Html = (texts: TemplateStringsArray, ...values: unknown[]) => unknown;

/** The element that a template becomes here, in place of one of preact. */
const element = (tag: unknown, props: unknown, ...children: unknown[]) => ({ tag, props, children });
const asRead = (htm as unknown as typeof htm.default).bind(element) as Html;

/** The function of the source with its templates compiled by the build. */
function compiled(template: (html: Html) => unknown): (html: unknown) => unknown {
  const code = compileTemplates(`it = ${template}`);
  expect(code).not.toContain('html`');
  return new Function(`let it; ${code}; return it`)();
}

it.each<(html: Html) => unknown>([
  (html) => html`<b>text</b>`,
  (html) => html`<${'part'} at=${7} ...${{ class: 'x', id: 'i' }} class="late" />`,
  (html) => html`<i ...${{ id: 'i' }} />`,
  (html) => html`<i ...${{ id: 'j', at: 1 }} title="t" ...${{ id: 'i' }} />`,
  (html) => html`<i class="one ${'A'} two ${7}" title="${'A'}" data-x=${1} hidden disabled=${false} />`,
  (html) => html`<p>${'A'}${' '}and <code>x</code>, ${[1, 'two']}.${null}${false}</p>`,
  (html) => html`
    <ul>
      <li>one</li>
      ${[1, 2].map((at) => html`<li key=${at}>${at} of <b>${2}</b></li>`)}
    </ul>
  `,
  (html) => html`<a/><b/>`,
  (html) => html`${'A'}`,
  (html) => html`only text`,
  (html) => html`<${'part'}><b>${html`<i>${'A'}</i>`}</b><//>`,
  (html) => html`<p title='a "quoted" one'>It's \\ here: \` $ {} “…” &lt;</p>`,
  (html) => html`<p title="back \\ and ${'A'} \` $\{x} \u{1f600}">x</p>`,
])('the build renders %s as htm does', (template) => {
  expect(compiled(template)(element)).toEqual(template(asRead));
});

it('the build notices if two templates differ', () => {
  expect(compiled((html) => html`<b>${1}</b>`)(element)).toEqual({ tag: 'b', props: null, children: [1] });
});
