import { HoldfastError } from '../errors.ts';
import { agedBy, type ExpiredRow } from '../expired/rows.ts';
import type { BoundHolding, Holders, Question, Verdict } from '../expired/source.ts';
import { NAMELESS } from '../line/calls.ts';
import type { LeaseDependencies } from '../line/dependencies.ts';
import { logLine } from '../surroundings/log.ts';

export const HOLDER_KINDS = ['holderEnded', 'holderUnknown'] as const;
export type HolderKind = (typeof HOLDER_KINDS)[number];

/**
 * Asks, for the report, about the executions of bound grants, and ends, for the clean-up, the grants of ended executions. The code is loaded
 * at the first bound grant, because most reports find no bound grant.
 */
export const boundHolders = (dependencies: LeaseDependencies): Holders => ({
  async ask(execution, call) {
    const { clock, clockSkewMs } = dependencies;
    const { describeExecution } = await import('../line/executions/state.ts');
    const { judgeBy } = await import('../line/executions/judgement.ts');
    const askedAt = clock.now();
    const described = await describeExecution(dependencies, execution, call).catch((error) => {
      if (!(error instanceof HoldfastError) || error.code === 'Throttled') throw error;
      logLine('WARN', { message: 'AWS does not say whether an execution runs', cause: error.message });
    });
    if (described === undefined || described.state === 'foreign') return () => 'unknown';
    const judge = judgeBy(described, { askedAt, clockSkewMs });
    return (grant) => judge(grant) ?? 'goesOn';
  },
  async end(row, call) {
    const { endIfOver } = await import('../permits/bound-end.ts');
    return endIfOver(dependencies, row, call);
  },
});

/** One question for each execution that holds bound grants. */
export const questionsAbout = (
  holders: Holders,
  holdings: readonly BoundHolding[],
  now: number,
): Question<HolderKind>[] =>
  [...Map.groupBy(holdings, ({ execution }) => execution)].map(([execution, held]) => async (call) => {
    const verdictOn = await holders.ask(execution, call);
    return held.flatMap((holding) => holderRow(holding, verdictOn(holding.grant), now));
  });

function holderRow(
  { key, holder, execution, isUnnotified, identity }: BoundHolding,
  verdict: Verdict,
  now: number,
): ExpiredRow<HolderKind>[] {
  if (verdict === 'goesOn' && !isUnnotified) return [];
  const who = holder ?? NAMELESS;
  const row = { key, holder, neverDeletable: false, ttlFault: null, identity };
  const end = typeof verdict === 'string' ? undefined : verdict.endedAt;
  const unknown =
    verdict === 'goesOn'
      ? `${who} may never have been notified of the grant, and its execution runs: ${execution}`
      : `AWS does not say whether the execution of ${who} runs: ${execution}`;
  const what: Pick<ExpiredRow<HolderKind>, 'kind' | 'reason'> = end === undefined
    ? { kind: 'holderUnknown', reason: unknown }
    : {
        kind: 'holderEnded',
        reason: `the execution of ${who} has ended, and no other caller wanted the key: ${execution}`,
      };
  return [{ ...row, ...what, ...agedBy(end, now) }];
}
