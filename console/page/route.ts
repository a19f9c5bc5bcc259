import { useEffect, useState } from 'preact/hooks';

/** The views, in the order of the tabs. */
export const VIEWS = ['keys', 'once', 'rates', 'commits', 'nameservice', 'expired', 'history'] as const;
export type View = (typeof VIEWS)[number];

/** What the page shows. It is written in the fragment of the address, so that people can link to it. */
export interface Route {
  view: View;
  /** The key that is open beside the list. */
  key: string | undefined;
  query: string;
  /** The name of a filter of the view. */
  filter: string;
  /** The name of an order of the view, with a leading minus if it is reversed. */
  sort: string;
}

/** Parses the fragment of an address. @param fragment as `location.hash` has it */
function parseRoute(fragment: string): Route {
  const [path = '', search = ''] = fragment.replace(/^#\/?/, '').split('?');
  const [name = '', ...rest] = path.split('/');
  const view = VIEWS.find((one) => one === name) ?? 'keys';
  const fields = new URLSearchParams(search);
  const key = (view === 'keys' || view === 'once') && rest.length > 0 ? decoded(rest.join('/')) : '';
  const [query = '', filter = '', sort = ''] = ['q', 'show', 'sort'].map((name) => fields.get(name) ?? '');
  return { view, key: key || undefined, query, filter, sort };
}

/** A link may have been cut in the middle of an escape sequence. Its text is then used as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function linkTo({ view, key, query, filter, sort }: Partial<Route> & { view: View }): string {
  // Pairs, and not an object, because the build shortens names of properties.
  const parameters = [
    ['q', query],
    ['show', filter],
    ['sort', sort],
  ];
  const given = parameters.filter((field): field is [string, string] => Boolean(field[1]));
  const fields = new URLSearchParams(given).toString();
  return `#/${view}${key === undefined ? '' : `/${encodeURIComponent(key)}`}${fields && `?${fields}`}`;
}

/** Changes the address without a new entry in the browser's history, for example at each letter of a search. */
export function replaceRoute(route: Route): void {
  history.replaceState(null, '', linkTo(route));
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = () => setRoute(parseRoute(location.hash));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return route;
}
