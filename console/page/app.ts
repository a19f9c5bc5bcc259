import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { NoticedChanges } from './changes.ts';
import { CommitsView } from './commits.ts';
import { Page } from './context.ts';
import { ExpiredView } from './expired.ts';
import { Help } from './help.ts';
import { HistoryView } from './history.ts';
import { html } from './html.ts';
import { KeysView } from './keys.ts';
import { NameserviceView } from './nameservice.ts';
import { OnceView } from './once.ts';
import { Age } from './parts.ts';
import { usePolled } from './polling.ts';
import { RatesView } from './rates.ts';
import { linkTo, useRoute, VIEWS, type View } from './route.ts';
import { call, readSettings, type Settings, type Whoami } from './service.ts';
import { useShortcuts } from './shortcuts.ts';
import { changeZone, zoneName } from './texts.ts';

const TITLES: Record<View, string> = {
  keys: 'Keys',
  once: 'Once',
  rates: 'Rates',
  commits: 'Commits',
  nameservice: 'Names',
  expired: 'Expired',
  history: 'History',
};

const VIEW_OF = {
  keys: KeysView,
  once: OnceView,
  rates: RatesView,
  commits: CommitsView,
  nameservice: NameserviceView,
  expired: ExpiredView,
  history: HistoryView,
};

/** How often to read the settings and the caller, which change only when the service or the server of the page is started again. */
const RARELY_MS = 300_000;

/** How long the outcome of an act stays on the screen. */
const SAID_MS = 8000;

const readWho = (signal: AbortSignal) => call('whoami', {}, signal);

/** The frame of the page, with the view that is open. */
export function App() {
  const route = useRoute();
  const { data: settings } = usePolled(readSettings, { everyMs: RARELY_MS });
  const { data: who } = usePolled(readWho, { everyMs: RARELY_MS });
  const noticedChanges = useMemo(() => new NoticedChanges(), []);
  const [said, setSaid] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSaid(''), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const [helping, setHelping] = useState(false);
  const help = useCallback(() => setHelping(true), []);
  const [, setZoned] = useState(0);
  const turnZone = () => {
    changeZone();
    setZoned((times) => times + 1); // every instant is drawn again
  };
  useShortcuts(help);
  const main = useRef<HTMLElement>(null);
  const before = useRef(route.view);
  useEffect(() => {
    document.title = `${route.key ?? TITLES[route.view]} · Holdfast`;
    // A screen reader then reads the new view. It reads the first view by itself.
    if (before.current !== route.view) main.current?.focus();
    before.current = route.view;
  }, [route.view, route.key]);
  const View = VIEW_OF[route.view];
  return html`<${Page.Provider} value=${{ settings, who, noticedChanges, announce: setSaid }}>
    <${Banner} view=${route.view} settings=${settings} who=${who} onHelp=${help} onZone=${turnZone} onSkip=${() => main.current?.focus()} />
    <main id="main" ref=${main} tabindex="-1"><h1 class="unseen">${TITLES[route.view]}</h1><${View} route=${route} /></main>
    <p class="said" role="status" aria-live="polite">${said}</p>
    ${helping && html`<${Help} onClose=${() => setHelping(false)} />`}
  <//>`;
}

interface BannerProps {
  view: View;
  settings: Settings | undefined;
  who: Whoami | undefined;
  onHelp(): void;
  /** Changes the time zone. */
  onZone(): void;
  /** Moves the focus behind the banner. */
  onSkip(): void;
}

function Banner({ view, settings, who, onHelp, onZone, onSkip }: BannerProps) {
  const skip = (event: Event) => {
    event.preventDefault(); // because the fragment of the address names the open view
    onSkip();
  };
  return html`<header class="banner">
    <a class="skip" href="#main" onClick=${skip}>Skip to the list</a>
    <a class="brand" href=${linkTo({ view: 'keys' })}>Holdfast</a>
    <nav aria-label="Views">
      ${VIEWS.map((one) => html`<a href=${linkTo({ view: one })} aria-current=${one === view ? 'page' : undefined}>${TITLES[one]}</a>`)}
    </nav>
    <div class="where">
      ${view !== 'history' && html`<${Age} />`}
      ${settings && html`<span class="mono endpoint" title=${who?.principal ?? settings.endpoint}>${settings.endpoint.replace(/^https?:\/\//, '')}</span>`}
      ${settings?.namespace && html`<span class="state" title="All that this page shows and changes is in this namespace"><span class="unseen">namespace </span>${settings.namespace}</span>`}
      ${settings && !settings.write && html`<span class="state" title="Start holdfast console with --write to change something">read only</span>`}
      ${who && html`<span class="quiet">${who.version}</span>`}
      <button type="button" class="zone" title="The time zone of this page. Click to change between UTC and the zone of the browser." onClick=${onZone}><span class="unseen">Time zone: </span>${zoneName()}</button>
      <button type="button" class="plain" aria-label="Help and shortcuts" onClick=${onHelp}>?</button>
    </div>
  </header>`;
}
