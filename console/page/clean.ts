import { useContext, useState } from 'preact/hooks';
import { Page } from './context.ts';
import { Dialog } from './dialog.ts';
import { html } from './html.ts';
import { ProblemDetail } from './parts.ts';
import { type CleanUp, call, type Problem, problemOf, type ReportPage } from './service.ts';
import { counted, kindName, spareReason } from './texts.ts';

interface CleanProps {
  report: Pick<ReportPage, 'reportId' | 'rows'>;
  onClose(): void;
}

type Kind = ReportPage['rows'][number]['kind'];

interface CleanChoices {
  kinds: Kind[];
  olderThanSeconds: number;
  neverDeletable: boolean;
}

/** The sum of a clean-up over all its pages. */
interface Total {
  deleted: CleanUp['deleted'];
  spared: CleanUp['spared'];
  olderThanSeconds: number;
  /** Why it stopped before the end of the report. */
  stoppedBy: CleanUp['stoppedBy'];
}

type Step = { step: 'ask' } | { step: 'checked'; total: Total } | { step: 'done'; total: Total };

/** Shows first what would be deleted, and deletes only after that. */
export function CleanDialog({ report: { reportId, rows }, onClose }: CleanProps) {
  const { announce } = useContext(Page);
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  const [choices, setChoices] = useState<CleanChoices>({ kinds, olderThanSeconds: 3600, neverDeletable: false });
  const [step, setStep] = useState<Step>({ step: 'ask' });
  const [countSoFar, setCountSoFar] = useState<number>();
  const [problem, setProblem] = useState<Problem>();

  const run = async (dryRun: boolean) => {
    setCountSoFar(0);
    setProblem(undefined);
    try {
      const total = await cleanAll({ reportId, ...choices, dryRun }, setCountSoFar);
      setStep({ step: dryRun ? 'checked' : 'done', total });
      announce(
        `${counted(total.deleted.count, 'record')} ${dryRun ? 'would be deleted' : 'deleted'}, ${total.spared.count} spared.`,
      );
    } catch (error) {
      setProblem(problemOf(error));
    }
    setCountSoFar(undefined);
  };
  const isBusy = countSoFar !== undefined;
  const canDelete = step.step === 'checked' && step.total.deleted.count > 0;
  return html`<${Dialog} title="Clean up expired records" wide onClose=${onClose}>
    ${step.step === 'ask' ? html`<${CleanChoicesForm} choices=${choices} kinds=${kinds} onChoices=${setChoices} />` : html`<${Outcome} step=${step.step} total=${step.total} />`}
    ${problem && html`<div class="notice trouble" role="alert"><p><${ProblemDetail} problem=${problem} /></p></div>`}
    ${isBusy && html`<p role="status">${counted(countSoFar, 'record')} so far…</p>`}
    <div class="buttons">
      <button type="button" onClick=${onClose}>${step.step === 'done' ? 'Close' : 'Leave them'}</button>
      ${step.step === 'checked' && html`<button type="button" disabled=${isBusy} onClick=${() => setStep({ step: 'ask' })}>Choose again</button>`}
      ${step.step === 'ask' && html`<button type="button" class="primary" disabled=${isBusy || choices.kinds.length === 0} onClick=${() => run(true)}>Show what would be deleted</button>`}
      ${canDelete && html`<button type="button" class="danger" disabled=${isBusy} onClick=${() => run(false)}>Delete ${counted(step.total.deleted.count, 'record')}</button>`}
    </div>
  <//>`;
}

interface CleanChoicesProps {
  choices: CleanChoices;
  kinds: Kind[];
  onChoices(choices: CleanChoices): void;
}

function CleanChoicesForm({ choices, kinds, onChoices }: CleanChoicesProps) {
  const toggle = (kind: Kind) =>
    onChoices({
      ...choices,
      kinds: choices.kinds.includes(kind) ? choices.kinds.filter((one) => one !== kind) : [...choices.kinds, kind],
    });
  const setAge = (event: Event) => {
    const seconds = Number((event.currentTarget as HTMLSelectElement).value);
    onChoices({ ...choices, olderThanSeconds: seconds });
  };
  return html`
    <p>Each record is deleted only if it is still exactly the one that was reported. A lease that is held again, or has a line, stays. You first see which records would be deleted.</p>
    <fieldset><legend>Kinds</legend>
      ${kinds.map((kind) => html`<label><input type="checkbox" checked=${choices.kinds.includes(kind)} onChange=${() => toggle(kind)} /> ${kindName(kind)}s</label>`)}
    </fieldset>
    <label class="field">Expired for at least
      <select value=${String(choices.olderThanSeconds)} onChange=${setAge}>
        ${AGES.map(([seconds, words]) => html`<option value=${seconds} selected=${seconds === choices.olderThanSeconds}>${words}</option>`)}
      </select>
    </label>
    <label class="field"><input type="checkbox" checked=${choices.neverDeletable} onChange=${() => onChoices({ ...choices, neverDeletable: !choices.neverDeletable })} /> Also records that DynamoDB never deletes, because their TTL is wrong or missing</label>
  `;
}

const AGES: [number, string][] = [
  [0, 'no matter how long'],
  [3600, 'an hour'],
  [86_400, 'a day'],
  [604_800, 'a week'],
];

function Outcome({
  step,
  total: { deleted, spared, olderThanSeconds, stoppedBy },
}: {
  step: 'checked' | 'done';
  total: Total;
}) {
  const isDryRun = step === 'checked';
  return html`
    <p><strong>${counted(deleted.count, 'record')} ${isDryRun ? 'would be deleted' : 'deleted'}.</strong> ${byKind(deleted.by)}</p>
    ${deleted.records.length > 0 && html`<${Records} records=${deleted.records} count=${deleted.count} />`}
    <p>${
      spared.count === 0
        ? 'No record is spared.'
        : `${counted(spared.count, 'record')} ${isDryRun ? 'would be' : 'were'} spared: ${Object.entries(spared.by)
            .map(([why, count]) => `${count} ${spareReason(why)}`)
            .join(', ')}.`
    }</p>
    ${olderThanSeconds > 0 && html`<p class="quiet">Records that expired less than ${Math.round(olderThanSeconds / 60)} minutes ago are too young. Records of leases stay at least as long as their fences are kept.</p>`}
    ${stoppedBy && html`<p class="notice">The clean-up stopped early (${stoppedBy}). Run it again for the rest.</p>`}
  `;
}

const byKind = (by: Partial<Record<string, number>>): string =>
  Object.entries(by)
    .map(([kind, count]) => counted(count ?? 0, kindName(kind)))
    .join(', ');

function Records({ records, count }: { records: CleanUp['deleted']['records']; count: number }) {
  return html`<ul class="records" tabindex="0" aria-label="The records">
    ${records.map(({ kind, key, holder }) => html`<li><span class="mono">${Object.values(key).join(' · ')}</span> <span class="quiet">${kindName(kind)}${holder && ` of ${holder}`}</span></li>`)}
    ${count > records.length && html`<li class="quiet">and ${(count - records.length).toLocaleString('en')} more</li>`}
  </ul>`;
}

/** Cleans page after page, until the report ends, or the clean-up stops for another reason than its time limit. */
async function cleanAll(
  request: CleanChoices & { reportId: string; dryRun: boolean },
  onProgress: (count: number) => void,
): Promise<Total> {
  const total: Total = {
    deleted: { count: 0, by: {}, records: [] },
    spared: { count: 0, by: {}, records: [] },
    olderThanSeconds: 0,
    stoppedBy: null,
  };
  for (let cursor: string | undefined; ; ) {
    const page = await call('clean', { ...request, ...(cursor && { cursor }) });
    add(total.deleted, page.deleted);
    add(total.spared, page.spared);
    onProgress(total.deleted.count + total.spared.count);
    total.olderThanSeconds = page.olderThanSeconds;
    total.stoppedBy = page.stoppedBy === 'time' ? null : page.stoppedBy;
    if (page.nextCursor === null || total.stoppedBy) return total;
    cursor = page.nextCursor;
  }
}

interface Count {
  count: number;
  by: Partial<Record<string, number>>;
  records: CleanUp['deleted']['records'];
}

/** How many records are listed at most. */
const MAX_LISTED = 100;

function add(total: Count, more: Count): void {
  total.count += more.count;
  for (const [group, count] of Object.entries(more.by)) total.by[group] = (total.by[group] ?? 0) + (count ?? 0);
  total.records.push(...more.records.slice(0, MAX_LISTED - total.records.length));
}
