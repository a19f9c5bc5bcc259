import { createContext } from 'preact';
import type { Operation } from '../../clients/typescript/src/transport.ts';
import type { NoticedChanges } from './changes.ts';
import type { Settings, Whoami } from './service.ts';

/** The values that every part of the page can read. */
export interface PageContext {
  /** Undefined until the server of the page has answered. */
  settings: Settings | undefined;
  /** Undefined until the service has answered, or if it does not answer that call. */
  who: Whoami | undefined;
  noticedChanges: NoticedChanges;
  /** Shows the outcome of an act, and lets screen readers read it. */
  announce(text: string): void;
}

export const Page = createContext<PageContext>({} as PageContext);

/** The reason why the reader may not send a call, or undefined. */
export function refusalOf({ settings, who }: PageContext, operation: Operation): string | undefined {
  if (settings && !settings.write)
    return 'This page only reads. Start holdfast console with --write to change something.';
  const known = who?.calls.find((one) => one.operation === operation);
  return known?.allowed === false ? `Your token lacks the scope ${known.permission}.` : undefined;
}
