// biome-ignore-all lint/suspicious/noTemplateCurlyInString: source text of the product, searched and replaced
import { change, type Mutation } from './mutation.ts';

/**
 * Ways to break the product that a history must show, because they test the checkers of the promises. What a test must show is a matter of
 * `npm run verify -- mutation-score`.
 */
export const MUTATIONS: Mutation[] = [
  {
    name: 'the take-over of a lease ignores the clock skew',
    promise: 'at most one holder at a time',
    changes: [change('const cut = grant.acquiredAt - clockSkewMs;', 'const cut = grant.acquiredAt;')],
    only: 'leases',
  },
  {
    name: 'a lease is taken over a second before its end',
    promise: 'at most one holder at a time',
    changes: [change('const cut = grant.acquiredAt - clockSkewMs;', 'const cut = grant.acquiredAt + 1000;')],
    only: 'leases',
  },
  {
    name: 'anybody may release a lease',
    promise: 'a lease answers as one lock with fences would',
    changes: [change("'lease_id = :leaseId'", "'lease_id = :leaseId OR attribute_exists(lease_id)'")],
    only: 'leases',
  },
  {
    name: 'a heartbeat shortens a lease',
    promise: 'a lease answers as one lock with fences would',
    changes: [change("'expires_at < :expires'", "'expires_at < :expires OR expires_at >= :expires'")],
    only: 'leases',
  },
  {
    name: 'a heartbeat revives a lease that was given back',
    promise: 'a lease answers as one lock with fences would',
    changes: [change('all(hasLeaseId(input.leaseId), isHeld, hasNoEndMark, condition)', 'hasLeaseId(input.leaseId)')],
    only: 'leases',
  },
  {
    name: 'a release forgets the fence',
    promise: 'a lease answers as one lock with fences would',
    changes: [
      change(
        'REMOVE lease_version, expires_at, execution',
        'REMOVE lease_version, expires_at, fence, execution',
        'shared/leases/end.ts',
      ),
    ],
    only: 'leases',
  },
  {
    name: 'a caller is locked out by his own request',
    promise: 'a lease answers as one lock with fences would',
    changes: [
      change(
        'record.requestId === requestId && record.holder === holder && record.principal',
        'record.holder === undefined && record.principal',
        'shared/line/acquisition.ts',
      ),
    ],
    only: 'leases',
  },
  {
    name: 'an operator breaks whatever lease there is',
    promise: 'a lease answers as one lock with fences would',
    changes: [change("'fence = :fence'", "'fence = :fence OR fence > :fence'")],
    only: 'leases',
  },
  {
    name: 'an expired lease is never taken over',
    promise: 'no key is stuck',
    changes: [change('const cut = grant.acquiredAt - clockSkewMs;', 'const cut = grant.acquiredAt - 86_400_000;')],
    only: 'leases',
  },
  {
    name: 'a commit puts without any condition',
    promise: 'one winner for each precondition',
    changes: [change("...(expectedEtag === null ? { IfNoneMatch: '*' } : { IfMatch: expectedEtag }),", '')],
    only: 'commits',
  },
  {
    name: 'a commit drops the If-Match',
    promise: 'one winner for each precondition',
    changes: [change('{ IfMatch: expectedEtag }', '{}')],
    only: 'commits',
  },
  {
    name: 'a commit drops the If-None-Match',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [change("{ IfNoneMatch: '*' }", '{}', 'shared/commits/write.ts')],
    only: 'commits',
  },
  {
    name: 'an older token of a fence commits',
    promise: 'no commit with a stale fence lands after a newer one',
    changes: [change('given.token >= stored.token', 'given.token >= 0')],
    only: 'commits',
  },
  {
    name: 'a fence is replaced twice after one commit',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [
      change(
        'return object?.marks?.isReset ? resetBefore(request) : undefined;',
        'return object ? undefined : resetBefore(request);',
      ),
    ],
    only: 'commits',
  },
  {
    name: 'a fence is replaced and the ETag stays',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [
      change(
        'return ranges(size, partBytes).length === parts ? 2 * partBytes : partBytes;',
        'return ranges(size, partBytes).length === parts ? 2 * partBytes : undefined;',
      ),
    ],
    only: 'commits',
  },
  {
    name: 'the fence is not written with the object',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [change('...(fence && { [FENCE]', '...(fence && before === null && { [FENCE]')],
    only: 'commits',
  },
  {
    name: 'an object remembers only the last commit of its chain',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [change('const commits = [...(before?.commits ?? []), entry];', 'const commits = [entry];')],
    only: 'commits',
  },
  {
    name: 'a repeat of a commit is not recognised',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [
      change(
        'commits.find((entry) => entry.commitId === commitId)',
        'commits.find((entry) => entry.commitId === `${commitId}?`)',
      ),
    ],
    only: 'commits',
  },
  {
    name: "a foreign writer's record is taken over at once",
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [change('if (clock.now() < takeOverAt)', 'if (takeOverAt < 0)')],
    only: 'commits',
  },
  {
    name: "a foreign writer's record is overwritten",
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [
      change(
        "expression: 'attribute_not_exists(#path)'",
        "expression: 'attribute_not_exists(#path) OR attribute_exists(#path)'",
      ),
    ],
    only: 'commits',
  },
  {
    name: 'the first observation of a foreign record is forgotten between calls',
    promise: 'no path is stuck',
    changes: [change('outcome.won ? item : (outcome.old ?? item)', 'outcome.won ? item : item')],
    only: 'commits',
  },
  {
    name: 'an object takes every chain for a whole one',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [
      change('before === null || (before?.complete === true && commits.length <= MAX_COMMITS)', 'commits.length > 0'),
    ],
    only: 'commits',
  },
  {
    name: 'a commit without a fence lands on a fenced object',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [change('return given !== undefined && given.key', 'return given === undefined || given.key')],
    only: 'commits',
  },
  {
    name: 'a record forgets the commits that it took the place of',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [change('return [commitId, ...kept,', 'return [commitId, ...kept.slice(0, 0),')],
    only: 'commits',
  },
  {
    name: 'a publish may lower t',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [change('`${t} < :t`', '`${t} < :t OR ${t} >= :t`')],
    only: 'nameservice',
  },
  {
    name: 'a stale publish is told as an update',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [change("published(alias, current, { outcome: 'stale' })", 'published(alias, current)')],
    only: 'nameservice',
  },
  {
    name: 'a ref is set whatever it was',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [
      change(
        'const isExpected = isAt(pointerNames(ref, pointerStyle), expected);',
        "const isExpected = { expression: 'attribute_exists(pk)' };",
      ),
    ],
    only: 'nameservice',
  },
  {
    name: 'a ref is set back whatever it was',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [
      change(
        'const condition = isAt(names, expected);',
        "const condition = { expression: expected ? 'attribute_exists(pk)' : '' };",
      ),
    ],
    only: 'nameservice',
  },
  {
    name: 'a status is set whatever it was',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [change('condition: hasStatus(expected)', "condition: { expression: 'attribute_exists(pk)' }")],
    only: 'nameservice',
  },
  {
    name: 'a config is set whatever it was',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [change('condition: all(isLedgerConfig, hasConfigVersion(expected.v))', 'condition: isLedgerConfig')],
    only: 'nameservice',
  },
  {
    name: 'a ledger is created over one that is there',
    promise: 'commit_t and index_t never go down',
    changes: [
      change("'attribute_not_exists(pk)'", "'attribute_not_exists(pk) OR attribute_exists(pk)'"),
      change("'attribute_not_exists(kind)'", "'attribute_not_exists(kind) OR attribute_exists(kind)'"),
    ],
    only: 'nameservice',
  },
  {
    name: 'a compare-and-set is told as lost though a try of it got no answer',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [
      change(
        'return unanswered ? unknown(conflict(alias, what, actual), operation) : conflict(alias, what, actual);',
        'return conflict(alias, what, actual);',
      ),
    ],
    only: 'nameservice',
  },
  {
    name: 'an item that was not lost is put back as it was in the beginning',
    promise: 'refs, status and config are linearizable, and stale publishes change nothing',
    changes: [
      change(
        `Item: initialItem(alias, concern, { now: clock.now(), style: pointerStyle }),
    ...conditionFields(isAbsent),`,
        'Item: initialItem(alias, concern, { now: clock.now(), style: pointerStyle }),',
      ),
    ],
    only: 'nameservice',
  },
  {
    name: 'a lease that is handed on keeps the execution of the one before',
    promise: 'at most one holder at a time',
    changes: [change("'data', 'execution', 'target',", "'data', 'target',")],
    only: 'queue',
  },
  {
    name: 'a lease is handed on whatever became of it since it was read',
    promise: 'at most one holder at a time',
    changes: [change('all(unchanged, isBelow(grant.fence))', 'isBelow(grant.fence)')],
    only: 'queue',
  },
  {
    name: 'a task that nobody answered for is taken for gone',
    promise: 'at most one holder at a time',
    changes: [
      change(
        `? 'throttled' : 'unanswered';
}`,
        `? 'throttled' : 'gone';
}`,
      ),
    ],
    only: 'queue',
  },
  {
    name: 'the schedule does not look at what expired',
    promise: 'no key is stuck',
    changes: [change('takeoverAt(record, clockSkewMs) <= clock.now()', 'takeoverAt(record, clockSkewMs) < 0')],
    only: 'queue',
  },
  {
    name: 'tickets are taken from the newest on',
    promise: 'parked tasks are granted in the order of their tickets',
    changes: [
      change(
        `      ConsistentRead: true,
      ...(limit`,
        `      ConsistentRead: true,
      ScanIndexForward: false,
      ...(limit`,
      ),
    ],
    only: 'queue',
  },
  {
    name: 'a task is parked before its ticket is written',
    promise: 'no parked task is forgotten',
    changes: [
      change(
        `await putWaiter(dependencies, waiter, call);
  const outcome = await enter(`,
        'const outcome = await enter(',
      ),
      change(
        `    throw error;
  });
  return { ...answerOf(waiter), parked:`,
        `    throw error;
  });
  if (outcome === 'waits') await putWaiter(dependencies, waiter, call);
  return { ...answerOf(waiter), parked:`,
      ),
    ],
    only: 'queue',
  },
  {
    name: 'a lease stays with a task that has gone',
    promise: 'no key is stuck',
    changes: [change("if (outcome !== 'gone') {", 'if (outcome) {')],
    only: 'queue',
  },
  {
    name: 'a bound lease stays with a callback that was refused',
    promise: 'a task that was refused never holds',
    changes: [
      change("if (outcome !== 'gone') {", "if (outcome !== 'gone' || from.bound === true) {"),
      change("if (delivery !== 'unanswered') await", "if (delivery === 'gone') await", 'shared/line/notify.ts'),
      change('if (mayWait && !isOverdue(waiter, dependencies.clock.now()))', 'if (mayWait)', 'shared/line/judge.ts'),
    ],
    only: 'queue',
  },
  {
    name: 'a task is told less than its ttl',
    promise: 'a task gets its whole ttl',
    changes: [change('- MAX_SHORTFALL_MS;', '- 20 * MAX_SHORTFALL_MS;')],
    only: 'queue',
  },
  {
    name: 'the wrapper lets its target run on after the lease',
    promise: 'no two targets run at once',
    changes: [
      change(
        '$min([$states.input.grant.remainingMs, $toMillis($states.input.grant.expiresAt) - $toMillis($states.context.State.EnteredTime)]) - 500',
        '$states.input.request.ttlSeconds * 1000 + 20000',
      ),
    ],
    only: 'queue',
  },
  {
    name: 'a quick release passes over the first in line',
    promise: 'nobody in line is overtaken',
    changes: [
      change(
        `const [oldest, next] = firstOf(waiting, clock.now() + clockSkewMs);
  const isFull`,
        `const [next, oldest = next] = firstOf(waiting, clock.now() + clockSkewMs);
  const isFull`,
      ),
    ],
    only: 'queue',
  },
  {
    name: 'tasks go before callers',
    promise: 'nobody in line is overtaken',
    changes: [
      change(
        'if (waiting.every((waiter) => !isTask(waiter))) return',
        `if (waiting.some(isTask)) return [waiting.find(isTask), waiting.find((one) => !isTask(one))];
  if (waiting) return`,
      ),
    ],
    only: 'queue',
  },
  {
    name: 'the clean-up deletes what is younger than fences are kept',
    promise: 'the clean-up removes no live record',
    changes: [change('Math.max(asked, fenceRetentionSeconds)', 'Math.min(asked, fenceRetentionSeconds)')],
    only: 'expiry',
  },
  {
    name: 'leases: an end of an execution frees its lease under the functions that work on within the grace',
    promise: 'nobody holds a lease beside the work of an ended execution within its grace',
    changes: [change('return Math.min(expiry, now + graceMs);', 'return now;')],
    only: 'patience',
  },
  {
    name: 'the weight in use is not in the condition of a permit',
    promise: 'nobody is granted a permit past its limit',
    changes: [change("{ ':room': integer(room) }", "{ ':room': integer(room + 1e9) }")],
    only: 'pools',
  },
  {
    name: 'the weight in use is compared by <> limit, as in the sample of AWS',
    promise: 'nobody is granted a permit past its limit',
    changes: [
      change("'#used <= :room', { ':room': integer(room) }", "'#used <> :room', { ':room': integer(room + 1) }"),
    ],
    only: 'pools',
  },
  {
    name: 'a result is stored whoever holds the run',
    promise: 'no worker stores a result after its run has ended',
    changes: [
      change(
        `all(hasLeaseId(leaseId), isHeld);

/** The last row`,
        `all(any(hasLeaseId(leaseId), isHeld), isHeld);

/** The last row`,
      ),
    ],
    only: 'once',
  },
  {
    name: 'the run of the next slot forgets which slot is done',
    promise: 'no caller begins a slot that is done, or an earlier slot',
    changes: [change("'ended_execution', 'input_hash'],", "'ended_execution', 'input_hash', 'done_slot'],")],
    only: 'once',
  },
  {
    name: 'a result is stored after the run was released',
    promise: 'no worker stores a result after its run has ended',
    changes: [
      change(
        `all(hasLeaseId(leaseId), isHeld);

/** The last row`,
        `hasLeaseId(leaseId);

/** The last row`,
      ),
    ],
    only: 'once',
  },
  {
    name: 'a worker that meets a done slot is told that it has stored the result',
    promise: 'a slot has one result, and every caller is told that result',
    changes: [
      change(
        'if (record?.done?.by === leaseId) return storedView',
        "if (record?.done && record.done.by !== '') return storedView",
      ),
    ],
    only: 'once',
  },
  {
    name: 'a slot is refused only if it equals the slot that is done',
    promise: 'no caller begins a slot that is done, or an earlier slot',
    changes: [change('OR done_slot < :slot OR keep_until', 'OR done_slot <> :slot OR keep_until')],
    only: 'once',
  },
  {
    name: 'a caller receives the result of whatever slot is done',
    promise: 'a slot has one result, and every caller is told that result',
    changes: [change('if (done && order === 0) {', 'if (done && order >= 0) {')],
    only: 'once',
  },
  {
    name: 'a worker that is gone is never replaced',
    promise: 'no key is stuck',
    changes: [
      change(
        `any(isFreeFor(grant), all(isExpired(cut), isNotEndingFor(grant)));
  const keepUntil`,
        `isFreeFor(grant);
  const keepUntil`,
      ),
    ],
    only: 'once',
  },
  {
    name: 'a run is taken over before the margin of the clocks is over',
    promise: 'one worker at a time works for a slot',
    changes: [change('mayBegin(grant, grant.acquiredAt - clockSkewMs)', 'mayBegin(grant, grant.acquiredAt)')],
    only: 'once',
  },
  {
    name: 'a call that is told to come back for its slot is not told the slot',
    promise: 'a caller that waits over the end of a period works for the period of its first call',
    changes: [change('...(chosen && { retryWith: chosen })', '...(chosen && {})')],
    only: 'once',
  },
  {
    name: 'a period begins no moment early',
    promise: 'a caller that is early at the beginning of a period works for that period',
    changes: [change('Math.floor((now + earlyMs(seconds)) / ms)', 'Math.floor((now + 0 * earlyMs(seconds)) / ms)')],
    only: 'once',
  },
  {
    name: 'a permit does not know that a redriven execution received it again',
    promise: 'nobody loses a permit before its time',
    changes: [
      change('if (own && (isFromLine(own) || own.execution !== undefined)) {', 'if (own && isFromLine(own)) {'),
    ],
    only: 'redrives',
  },
  {
    name: 'a grant from before a redrive stays while the execution runs',
    promise: 'no task waits two minutes behind a grant that nobody has',
    changes: [change('<= redrivenAt - clockSkewMs', '<= redrivenAt - 1e13 * clockSkewMs')],
    only: 'redrives',
  },
];
