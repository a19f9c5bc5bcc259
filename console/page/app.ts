import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { History } from './changes.ts';
import { CommitsView } from './commits.ts';
import { Page } from './context.ts';
import { ExpiredView } from './expired.ts';
import { Help } from './help.ts';
import { HistoryView } from './history.ts';
import { html } from './html.ts';
import { useKeys } from './keys.ts';
import { LeasesView } from './leases.ts';
import { NamesView } from './names.ts';
import { OnceView } from './once.ts';
import { Age } from './parts.ts';
import { usePolled } from './polling.ts';
import { RatesView } from './rates.ts';
import { linkTo, useRoute, VIEWS, type View } from './route.ts';
import { call, readSettings, type Settings, type Whoami } from './service.ts';
import { changeZone, zoneName } from './words.ts';

const TITLES: Record<View, string> = {
  leases: 'Keys',
  once: 'Once',
  rates: 'Rates',
  commits: 'Commits',
  names: 'Names',
  expired: 'Expired',
  history: 'History',
};

const VIEW_OF = {
  leases: LeasesView,
  once: OnceView,
  rates: RatesView,
  commits: CommitsView,
  names: NamesView,
  expired: ExpiredView,
  history: HistoryView,
};

/** How often to ask for what changes only if the service, or the server of the page, starts again. */
const RARELY_MS = 300_000;

/** How long what was done stays on the screen. */
const SAID_MS = 8000;

const askWho = (signal: AbortSignal) => call('whoami', {}, signal);

export function App() {
  const route = useRoute();
  const { data: settings } = usePolled(readSettings, { everyMs: RARELY_MS });
  const { data: who } = usePolled(askWho, { everyMs: RARELY_MS });
  const history = useMemo(() => new History(), []);
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
  useKeys(help);
  const main = useRef<HTMLElement>(null);
  const before = useRef(route.view);
  useEffect(() => {
    document.title = `${route.key ?? TITLES[route.view]} · Holdfast`;
    // A reader who listens is told of the new view; the first one is read anyway.
    if (before.current !== route.view) main.current?.focus();
    before.current = route.view;
  }, [route.view, route.key]);
  const View = VIEW_OF[route.view];
  return html`<${Page.Provider} value=${{ settings, who, history, announce: setSaid }}>
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
  /** Puts the focus behind the banner. */
  onSkip(): void;
}

function Banner({ view, settings, who, onHelp, onZone, onSkip }: BannerProps) {
  const skip = (event: Event) => {
    event.preventDefault(); // the fragment of the address says which view is open
    onSkip();
  };
  return html`<header class="banner">
    <a class="skip" href="#main" onClick=${skip}>Skip to the list</a>
    <a class="brand" href=${linkTo({ view: 'leases' })}>Holdfast</a>
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
      <button type="button" class="plain" aria-label="Keys and help" onClick=${onHelp}>?</button>
    </div>
  </header>`;
}
