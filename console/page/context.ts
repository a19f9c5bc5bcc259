import { createContext } from 'preact';
import type { Operation } from '../../clients/typescript/src/transport.ts';
import type { History } from './changes.ts';
import type { Settings, Whoami } from './service.ts';

/** What every part of the page may need. */
export interface PageContext {
  /** Undefined until the server has said it. */
  settings: Settings | undefined;
  /** Undefined until the service has said it, or if it does not say it. */
  who: Whoami | undefined;
  history: History;
  /** Says something to all readers, also to those who listen: the outcome of what they did. */
  announce(text: string): void;
}

export const Page = createContext<PageContext>({} as PageContext);

/** Why the reader may not send a call, in words; undefined if it may be tried. */
export function refusalOf({ settings, who }: PageContext, operation: Operation): string | undefined {
  if (settings && !settings.write)
    return 'This page only reads. Start holdfast console with --write to change something.';
  const known = who?.calls.find((one) => one.operation === operation);
  return known?.allowed === false ? `Your token lacks the scope ${known.permission}.` : undefined;
}
