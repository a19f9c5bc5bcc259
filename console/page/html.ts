import { html as template } from 'htm/preact';
import type { VNode } from 'preact';

/** Elements from a template, for example html`<b>${text}</b>`. Texts are set as text, never as markup. */
export const html = template as (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
