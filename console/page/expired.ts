import { useContext, useState } from 'preact/hooks';
import { CleanDialog } from './clean.ts';
import { Page, refusalOf } from './context.ts';
import { html } from './html.ts';
import { List, type Table } from './list.ts';
import { At, Ends, Loaded, None, ProblemDetail, Since, Who } from './parts.ts';
import { usePolled } from './polling.ts';
import type { Route } from './route.ts';
import { call, Problem, problemOf, type ReportPage } from './service.ts';
import { counted, kindName, nameOf } from './texts.ts';

/** How often the report is read. By default, a new report is made each quarter of an hour. */
const POLL_EVERY_MS = 30_000;
const MAX_PAGES = 5;

/** The last complete report, with the rows that are shown. */
type Report = Omit<ReportPage, 'nextCursor'> & { more: boolean };

async function readReport(signal: AbortSignal): Promise<Report | null> {
  try {
    let page = await call('readExpired', { limit: 1000 }, signal);
    const rows = [...page.rows];
    for (let pages = 1; page.nextCursor !== null && pages < MAX_PAGES; pages++) {
      page = await call('readExpired', { reportId: page.reportId, limit: 1000, cursor: page.nextCursor }, signal);
      rows.push(...page.rows);
    }
    return { ...page, rows, more: page.nextCursor !== null };
  } catch (error) {
    if (error instanceof Problem && error.code === 'NotFound') return null;
    throw error;
  }
}

/** The tab Expired: the expired records, who left them and why, and their clean-up. */
export function ExpiredView({ route }: { route: Route }) {
  const polled = usePolled(readReport, { everyMs: POLL_EVERY_MS });
  return html`<section aria-label="Expired records">
    <${Loaded} polled=${polled}>${(report: Report | null) => html`<${ReportView} report=${report} route=${route} onChange=${polled.refresh} />`}<//>
  </section>`;
}

interface ReportProps {
  report: Report | null;
  route: Route;
  onChange(): void;
}

function ReportView({ report, route, onChange }: ReportProps) {
  const context = useContext(Page);
  const [cleaning, setCleaning] = useState<Report>();
  const refusal = refusalOf(context, 'clean');
  return html`
    <div class="head">
      <p class="lead">${
        report === null
          ? 'There is no report yet. The schedule creates reports.'
          : html`The report of <${At} instant=${report.startedAt} />, <${Since} instant=${report.startedAt} />: ${counted(report.scanned, 'record')} checked.${
              report.neverDeletable > 0 &&
              ` DynamoDB will never delete ${report.neverDeletable.toLocaleString('en')} of the expired records.`
            }`
      }</p>
      <div class="buttons">
        <${ReportNow} onChange=${onChange} />
        ${report && html`<button type="button" disabled=${refusal !== undefined || report.rows.length === 0} onClick=${() => setCleaning(report)}>Clean up…</button>`}
      </div>
    </div>
    ${refusal && html`<p class="why">${refusal}</p>`}
    ${report && html`<${Rows} report=${report} route=${route} />`}
    ${
      cleaning &&
      html`<${CleanDialog} report=${cleaning} onClose=${() => {
        setCleaning(undefined);
        onChange();
      }} />`
    }
  `;
}

function ReportNow({ onChange }: { onChange(): void }) {
  const context = useContext(Page);
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const refusal = refusalOf(context, 'report');
  const run = async () => {
    setRunning(true);
    setProblem(undefined);
    try {
      const { complete } = await call('report', {});
      context.announce(complete ? 'The report is complete.' : 'The report has begun. The next run continues it.');
    } catch (error) {
      setProblem(problemOf(error));
    }
    setRunning(false);
    onChange();
  };
  return html`
    <button type="button" disabled=${isRunning || refusal !== undefined} onClick=${run}>${isRunning ? 'Reporting…' : 'Report now'}</button>
    ${problem && html`<p class="why" role="alert"><${ProblemDetail} problem=${problem} /></p>`}
  `;
}

type Row = Report['rows'][number];

const nameOfRow = ({ key }: Row): string => Object.values(key).join(' · ');

const COLUMNS: Table<Row>['columns'] = [
  {
    head: 'Record',
    class: 'mono',
    cell: (row) => html`<${Ends} text=${nameOfRow(row)} />`,
    order: { by: 'record', value: nameOfRow },
  },
  {
    head: 'Kind',
    cell: ({ kind }) => kindName(kind),
    order: { by: 'kind', value: ({ kind }) => kindName(kind) },
    width: '11rem',
  },
  {
    head: 'Left by',
    class: 'mono',
    cell: ({ holder }) => (holder === null ? None('not known') : html`<${Who} holder=${holder} />`),
    order: { by: 'holder', value: ({ holder }) => holder && nameOf(holder) },
    width: '16%',
  },
  {
    head: 'Expired',
    cell: ({ expiredAt }) => (expiredAt ? html`<${Since} instant=${expiredAt} />` : None('not known')),
    order: { by: 'expired', value: ({ expiredAt }) => expiredAt },
    width: '9rem',
  },
  { head: 'Why', class: 'reason', cell: ({ reason }) => reason, width: '32%' },
];

const idOf = ({ kind, key }: Row) => [kind, ...Object.values(key)].join();
const texts = ({ key, holder, reason }: Row) => [...Object.values(key), holder, reason];

function Rows({ report: { rows, more }, route }: { report: Report; route: Route }) {
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  const filters = Object.fromEntries([
    ['all', { label: 'All', has: () => true }],
    ...kinds.map((kind) => [kind, { label: `${kindName(kind)}s`, has: (row: Row) => row.kind === kind }]),
  ]);
  return html`<${List} noun="record" empty="No expired record was left behind." columns=${COLUMNS} start="as reported" ...${{ route, rows, more, filters, idOf, texts }} />`;
}
