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
    changes: [
      change('const cut = now - dependencies.clockSkewMs;', 'const cut = now;', 'shared/locks/record/grants.ts'),
    ],
    only: 'leases',
  },
  {
    name: 'any caller may release a lease',
    promise: 'a lease answers as one lock with fences would',
    changes: [change("expression: '#h.i = :id',", "expression: '#h.i = :id OR attribute_exists(#h.i)',")],
    only: 'leases',
  },
  {
    name: 'a heartbeat shortens a lease',
    promise: 'a lease answers as one lock with fences would',
    changes: [change("'#h.e < :expires'", "'#h.e < :expires OR #h.e >= :expires'")],
    only: 'leases',
  },
  {
    name: 'a release forgets the fence',
    promise: 'a lease answers as one lock with fences would',
    changes: [change("...['lease_version', 'execution',", "...['lease_version', 'fence', 'execution',")],
    only: 'leases',
  },
  {
    name: 'a caller is locked out by his own request',
    promise: 'a lease answers as one lock with fences would',
    changes: [change('return isCurrent ?', 'return ownEntry.expiresAt < 0 ?')],
    only: 'leases',
  },
  {
    name: 'an operator breaks whatever lease there is',
    promise: 'a lease answers as one lock with fences would',
    changes: [
      change(
        'record.entries.find((held) => held.fence === fence)',
        'record.entries.find((held) => held.fence >= fence)',
      ),
    ],
    only: 'leases',
  },
  {
    name: 'an expired lease is never taken over',
    promise: 'no key is stuck',
    changes: [change("'used = :all AND #alone.e < :cut'", "'used = :all AND #alone.e < :cut AND #alone.e > :cut'")],
    only: 'leases',
  },
  {
    name: 'a heartbeat does not show third-party clients the new expiry',
    promise: 'third-party clients take a held key for held',
    changes: [
      change(
        "[...extension.set, `lease_expiry = ${capTtlOr(':seconds')} + #h.u`]",
        "[...extension.set, `lease_expiry = ${capTtlOr(':seconds')}`]",
      ),
    ],
    only: 'leases',
  },
  {
    name: 'the fence of an exclusive grant is one more than the last',
    promise: 'the fence of an exclusive grant is not behind the clock',
    changes: [
      change(
        'Math.max((line?.record.fence ?? record?.fence ?? 0) + 1, now);',
        '(line?.record.fence ?? record?.fence ?? now - 1) + 1;',
      ),
    ],
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
        'return object?.serviceMetadata?.isReset ? fenceAlreadyReset(request) : undefined;',
        'return object ? undefined : fenceAlreadyReset(request);',
      ),
    ],
    only: 'commits',
  },
  {
    name: 'a fence is replaced and the ETag stays',
    promise: 'no acknowledged commit is lost, none lands twice, and every refusal is true',
    changes: [
      change(
        'return partRanges(size, partBytes).length === parts ? 2 * partBytes : partBytes;',
        'return partRanges(size, partBytes).length === parts ? 2 * partBytes : undefined;',
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
    name: 'a stale publish is answered as an update',
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
    name: 'a compare-and-set is answered as lost after a try without an answer',
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
    changes: [change("remove: [...stale, ...(execution === undefined ? ['execution'] : [])],", 'remove: [...stale],')],
    only: 'queue',
  },
  {
    name: 'a lease is handed on whatever became of it since it was read',
    promise: 'at most one holder at a time',
    changes: [change('underCap, ...areAsSeen, ...(line.conditions', 'underCap, ...(line.conditions')],
    only: 'queue',
  },
  {
    name: 'a task without an answer about it is taken for gone',
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
    name: 'no waiter in line checks what expired',
    promise: 'no key is stuck',
    changes: [
      change(
        'record.entries.filter((entry) => takeOverAt(entry, clockSkewMs) <= now &&',
        'record.entries.filter((entry) => takeOverAt(entry, clockSkewMs) <= 0 &&',
      ),
    ],
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
  const outcome = await enter(dependencies, { lock, waiter }, call);`,
        `const outcome = await enter(dependencies, { lock, waiter }, call);
  if (outcome === 'waits') await putWaiter(dependencies, waiter, call);`,
      ),
    ],
    only: 'queue',
  },
  {
    name: 'a bound lease stays with a callback that was refused',
    promise: 'a task that was refused never holds',
    changes: [
      change('if (entry) grantsOfGoneTasks.push(', 'if (entry && !entry.bound) grantsOfGoneTasks.push('),
      change("if (outcome !== 'unanswered') await", "if (outcome === 'gone') await", 'shared/locks/line/notify.ts'),
      change(
        'if (mayWait && !isOverdue(waiter, dependencies.clock.now()))',
        'if (mayWait)',
        'shared/locks/line/next.ts',
      ),
    ],
    only: 'queue',
  },
  {
    name: 'a task is notified of less than its ttl',
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
    name: 'a quick release passes over the next waiter',
    promise: 'no waiter is overtaken',
    changes: [change('const [waiter, ...behind] = waiting', 'const [first, waiter = first, ...behind] = waiting')],
    only: 'queue',
  },
  {
    name: 'the clean-up deletes what is younger than fences are kept',
    promise: 'the clean-up removes no live record',
    changes: [
      change('Math.max(olderThanSeconds, fenceRetentionSeconds)', 'Math.min(olderThanSeconds, fenceRetentionSeconds)'),
    ],
    only: 'expiry',
  },
  {
    name: 'leases: an end of an execution frees its lease under the functions that work on within the grace',
    promise: 'no caller holds a lease beside the work of an ended execution within its grace',
    changes: [change('return Math.min(expiresAt, now + graceMs);', 'return now;')],
    only: 'patience',
  },
  {
    name: "the weight in use is compared by <> limit, as in AWS's sample",
    promise: 'no caller is granted a permit past its limit',
    changes: [
      change(
        "'used <= :room', values: { ':room': integer(room) }",
        "'used <> :room', values: { ':room': integer(room + 1) }",
      ),
    ],
    only: 'permits',
  },
  {
    name: 'a result is stored even if another worker holds the run',
    promise: 'no worker stores a result after its run has ended',
    changes: [
      change(
        '...conditionFields(hasLeaseId(proof), {',
        "...conditionFields({ ...hasLeaseId(proof), expression: 'attribute_exists(#h.i)' }, {",
      ),
    ],
    only: 'once',
  },
  {
    name: 'the run of the next slot forgets which slot is done',
    promise: 'no caller begins a slot that is done, or an earlier slot',
    changes: [change("['execution', 'input_hash'];", "['execution', 'input_hash', 'done_slot'];")],
    only: 'once',
  },
  {
    name: 'a result is stored after the run was released',
    promise: 'no worker stores a result after its run has ended',
    changes: [change('`${alias}.i`, `${alias}.v`],', '`${alias}.v`],')],
    only: 'once',
  },
  {
    name: 'a worker that meets a done slot is answered as if it had stored the result',
    promise: 'a slot has one result, and every caller receives it',
    changes: [
      change(
        'if (record.done?.by === proof.id) return storedView',
        "if (record.done && record.done.by !== '') return storedView",
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
    promise: 'a slot has one result, and every caller receives it',
    changes: [change('if (done && order === 0) {', 'if (done && order >= 0) {')],
    only: 'once',
  },
  {
    name: 'a worker that is gone is never replaced',
    promise: 'no key is stuck',
    changes: [
      change(
        `isFreeForExclusive(cut),
    isNotRemembered(name),
    isNotDone`,
        `isFreeForExclusive(0),
    isNotRemembered(name),
    isNotDone`,
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
    name: 'a call that must come back for its slot does not receive the slot',
    promise: 'a caller that waits over the end of a period works for the period of its first call',
    changes: [change('...(retryFields && { retryWith: retryFields })', '...(retryFields && {})')],
    only: 'once',
  },
  {
    name: 'a period begins no moment early',
    promise: 'a caller that is early at the beginning of a period works for that period',
    changes: [change('const moment = now + earlyMs(lengthOf(per) ?? 0);', 'const moment = now;')],
    only: 'once',
  },
  {
    name: 'a grant does not know that a redriven execution received it again',
    promise: 'no holder loses a lease before its time',
    changes: [change('if (!isFromLine(ownEntry) && ownEntry.execution === undefined)', 'if (!isFromLine(ownEntry))')],
    only: 'redrives',
  },
  {
    name: 'a grant from before a redrive stays while the execution runs',
    promise: 'no task waits two minutes behind a grant without a holder',
    changes: [change('<= redrivenAt - clockSkewMs', '<= redrivenAt - 1e13 * clockSkewMs')],
    only: 'redrives',
  },
  {
    name: 'the mark goes without regard to callers that sleep',
    promise: 'the mark stays while a place is live',
    changes: [change("if (judgement === 'asleep')", "if (judgement === 'asleep' && !found)")],
    only: 'queue',
  },
  {
    name: 'a caller that has slept begins at the end of the line',
    promise: 'a caller that comes back in time keeps its position',
    changes: [change('if (place && (await putRowBack(', "if (place && ticket === '' && (await putRowBack(")],
    only: 'leases',
  },
  {
    name: 'a cancellation does not flag a sleeper',
    promise: 'a withdrawn request holds no lease',
    changes: [
      change('waiter && !task ? await flagTicket(dependencies, { key, ticket }, call)', 'waiter && !task ? waiter'),
    ],
    only: 'queue',
  },
  {
    name: 'a repeat of the last reservation pays again',
    promise: 'a reservation pays for its units, and a repeat that is still the last pays once',
    changes: [
      change(
        'paid_until <= :latest AND NOT last_request = :last',
        'paid_until <= :latest AND NOT last_request = :rates',
      ),
    ],
    only: 'rates',
  },
  {
    name: 'a repeat gets its start even if that start is over',
    promise: 'no more units start in a time than the rate allows',
    changes: [change('paidUntil >= now + terms.charge ?', 'paidUntil >= terms.charge ?')],
    only: 'rates',
  },
  {
    name: 'a reservation that is not the last is cancelled',
    promise: 'an open reservation is settled once, by its real units, and only the last is cancelled otherwise',
    changes: [
      change(
        `const isLast = (reservation: Reservation): Condition => ({
  expression: 'last_request = :last',`,
        `const isLast = (reservation: Reservation): Condition => ({
  expression: 'last_request = :last OR attribute_exists(last_request)',`,
      ),
    ],
    only: 'rates',
  },
  {
    name: 'whole seconds to a start are rounded down',
    promise: 'no caller starts before the start of its reservation',
    changes: [
      change(
        'sleepSeconds: Math.ceil(waitMs / 1000)',
        'sleepSeconds: Math.floor(waitMs / 1000)',
        'shared/rates/reserve.ts',
      ),
    ],
    only: 'rates',
  },
  {
    name: 'the first try of a call does not ask for the cap',
    promise: 'no caller is granted the key while its cap is reached',
    changes: [change('    isUnmarked,\n    underCap,\n', '    isUnmarked,\n')],
    only: 'permits',
  },
  {
    name: 'a hand-off does not ask for the cap',
    promise: 'no caller is granted the key while its cap is reached',
    changes: [
      change('const grant = { ...newGrant, room: roomUnder(cap, newGrant) };', 'const grant = newGrant;'),
      change('const cap = known && capAt(known, {', 'const cap = known && !line && capAt(known, {'),
      change(
        'hasRoomAsSeen(line.record, room), underCap, ...areAsSeen',
        'hasRoomAsSeen(line.record, room), ...areAsSeen',
      ),
    ],
    only: 'permits',
  },
  {
    name: 'a late command of an operator replaces a later one',
    promise: 'only a later command changes a cap',
    changes: [
      change('attribute_not_exists(cap_at) OR cap_at < :cap_at', 'attribute_not_exists(cap_at) OR cap_at <> :cap_at'),
    ],
    only: 'permits',
  },
  {
    name: 'a hand-off serves the line without regard to the waiter that was moved',
    promise: 'a waiter that an operator has moved is served before all others',
    changes: [
      change('if (row) yield row;\n  const sortKey = row && waiterKey(row).ticket;', "const sortKey = row && '';"),
    ],
    only: 'queue',
  },
  {
    name: 'a moved waiter stays first after its grant',
    promise: 'a moved waiter comes first once',
    changes: [change('remove: movedToRemove(moved)', 'remove: []')],
    only: 'queue',
  },
  {
    name: 'a request that was replaced is not remembered',
    promise: 'no request is granted the key after a newer one has replaced it',
    changes: [change("'r0 = latest.n'", "'r0 = :none'")],
    only: 'queue',
  },
  {
    name: 'no newer request asks the holder to stop',
    promise: 'a holder that lets itself be replaced is asked to stop',
    changes: [
      change(
        "if (!latest?.stops || entry?.replace !== 'running'",
        "if (!latest?.stops || entry?.replace !== 'waiting'",
      ),
    ],
    only: 'leases',
  },
  {
    name: 'each newer request replaces every waiter',
    promise: 'a request is superseded only if both replace, and the other joined later',
    changes: [change('if (replace === undefined) return write();', '')],
    only: 'leases',
  },
];
