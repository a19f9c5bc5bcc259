import { html as template } from 'htm/preact';
import type { VNode } from 'preact';

/** Makes elements from a template, for example html`<b>${text}</b>`. Texts are always set as text, and never as markup. */
export const html = template as (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
