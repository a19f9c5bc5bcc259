// biome-ignore-all lint/suspicious/noTemplateCurlyInString: source text of the product, searched and replaced
import { ATTACKS } from './attacks.ts';
import { BREAKS } from './breaks.ts';
import { CALLBACKS } from './callbacks.ts';
import { DURABLE } from './durable.ts';
import { BOUND_GRANTS, EXECUTIONS } from './executions.ts';
import { KINDS } from './kinds.ts';
import { change, type Mutation } from './mutation.ts';
import { ONCE } from './once.ts';
import { POOLS } from './pools.ts';
import { QUEUE_BOUNDS } from './queue-bounds.ts';
import { QUEUE_LINE } from './queue-line.ts';
import { QUEUE_WAITS } from './queue-waits.ts';

const ONE_HOLDER = 'at most one holder at a time';
const ONE_LOCK = 'a lease answers as one lock with fences would';
const ONE_WINNER = 'one winner for each precondition';
const STALE_FENCE = 'no commit with a stale fence lands after a newer one';
const NO_LOSS = 'no acknowledged commit is lost, none lands twice, and every refusal is true';
const NO_STUCK_PATH = 'no path is stuck';
const NO_STUCK_KEY = 'no key is stuck';
const REGISTERS = 'refs, status and config are linearizable, and stale publishes change nothing';
const IN_ORDER = 'parked tasks are granted in the order of their tickets';
const NONE_FORGOTTEN = 'no parked task is forgotten';
const NO_LIVE_RECORD = 'the clean-up removes no live record';
const WHOLE_TTL = 'a task gets its whole ttl';
const TARGETS_ALONE = 'no two targets run at once';
const NEVER_DOWN = 'commit_t and index_t never go down';

export const MUTATIONS: Mutation[] = [
  {
    name: 'the take-over of a lease ignores the clock skew',
    promise: ONE_HOLDER,
    changes: [change('const cut = grant.acquiredAt - clockSkewMs;', 'const cut = grant.acquiredAt;')],
    only: 'leases',
    seed: 86,
  },
  {
    name: 'a lease is taken over a second before its end',
    promise: ONE_HOLDER,
    changes: [change('const cut = grant.acquiredAt - clockSkewMs;', 'const cut = grant.acquiredAt + 1000;')],
    only: 'leases',
    seed: 1,
  },
  {
    name: 'anybody may release a lease',
    promise: ONE_LOCK,
    changes: [change("'lease_id = :leaseId'", "'lease_id = :leaseId OR attribute_exists(lease_id)'")],
    only: 'leases',
    seed: 6,
  },
  {
    name: 'a heartbeat shortens a lease',
    promise: ONE_LOCK,
    changes: [change("'expires_at < :expires'", "'expires_at < :expires OR expires_at >= :expires'")],
    only: 'leases',
    seed: 3,
  },
  {
    name: 'a heartbeat revives a lease that was given back',
    promise: ONE_LOCK,
    changes: [change('all(hasLeaseId(input.leaseId), isHeld, hasNoEndMark, condition)', 'hasLeaseId(input.leaseId)')],
    only: 'leases',
    seed: 3,
  },
  {
    name: 'the fence of a grant need not rise',
    changes: [
      change(
        "'attribute_not_exists(fence) OR fence < :fence'",
        "'attribute_not_exists(fence) OR fence < :fence OR fence >= :fence'",
      ),
    ],
    test: {
      file: 'test/leases/fence.test.ts',
      name: 'expiry under a clock that stepped back: the expired record shows a fence ahead of the clock',
    },
  },
  {
    name: 'a late grant keeps the fence from before its write',
    changes: [
      change(
        'if (item?.fence !== undefined || !isLate(grant, dependencies.clock.now())) return granted;',
        'return granted;',
      ),
    ],
    test: {
      file: 'test/histories/courses/late-grants.test.ts',
      name: 'the fences of leases rise on record in a course of a history: a grant is written late, after another grant',
    },
  },
  {
    name: 'a grant that an earlier try of the SDK left keeps the fence from before its write',
    changes: [change('if (outcome.won || outcome.old?.lease_version?.S === grant.version) {', 'if (outcome.won) {')],
    test: {
      file: 'test/leases/late-grants.test.ts',
      name: 'a grant whose write arrived late has the higher fence if the SDK sends the write again after a lost answer',
    },
  },
  {
    name: 'a late grant has its fence raised beside a fence that it met',
    changes: [change('if (item?.fence !== undefined || !isLate', 'if (!isLate')],
    test: { file: 'test/leases/late-grants.test.ts', name: 'however late DynamoDB answers, if the record had a fence' },
  },
  {
    name: 'a grant counts as late after a second',
    changes: [change('const PROMPT_MS = 50;', 'const PROMPT_MS = 1000;')],
    test: {
      file: 'test/leases/late-grants.test.ts',
      name: 'a grant is one write if DynamoDB answers within 50 ms, and two writes after that',
    },
  },
  {
    name: 'a raised fence changes whatever grant stands there',
    changes: [
      change(
        'return raised.won ? { ...granted, record: raised.record } : undefined;',
        'return { ...granted, record: raised.record };',
      ),
    ],
    test: {
      file: 'test/leases/late-grants.test.ts',
      name: 'a grant whose write arrived late is lost if a duplicate call releases it before its fence is raised',
    },
  },
  {
    name: 'a grant whose fence could not be raised is told as one that was not made',
    changes: [
      change(
        'error instanceof HoldfastError ? outcomeUnknown(writing(`table ${dependencies.table}`), error) : error',
        'error',
      ),
    ],
    test: {
      file: 'test/leases/late-grants.test.ts',
      name: 'a grant whose write arrived late has an unknown outcome if its fence could not be raised, and the repeat finds the grant',
    },
  },
  {
    name: 'a late hand-off keeps the fence from before its write',
    changes: [change('landed(grant, hasLateFence ?', 'landed(grant, !record ?')],
    test: {
      file: 'test/leases/late-grants.test.ts',
      name: 'a grant whose write arrived late has the higher fence if a hand-off writes the grant of a task',
    },
  },
  {
    name: 'a claim keeps the fence of a hand-off that met no record',
    changes: [
      change('record.previous === undefined ? risingFence(record, now) : undefined', 'undefined as number | undefined'),
    ],
    test: {
      file: 'test/leases/late-grants.test.ts',
      name: 'a grant whose write arrived late has the higher fence if a hand-off writes the grant of a caller and fails before it raises the fence',
    },
  },
  {
    name: 'a release forgets the fence',
    promise: ONE_LOCK,
    changes: [
      change(
        'REMOVE lease_version, expires_at, execution',
        'REMOVE lease_version, expires_at, fence, execution',
        'shared/leases/end.ts',
      ),
    ],
    only: 'leases',
    seed: 13,
  },
  {
    name: 'a caller is locked out by his own request',
    promise: ONE_LOCK,
    changes: [
      change(
        'record.requestId === requestId && record.holder === holder && record.principal',
        'record.holder === undefined && record.principal',
        'shared/line/acquisition.ts',
      ),
    ],
    only: 'leases',
    seed: 3,
  },
  {
    name: 'a late duplicate of a released request leases again',
    changes: [change('all(isFree, not(isOf(request)))', 'isFree')],
    test: {
      file: 'test/leases/acquire.test.ts',
      name: 'acquire refuses the request of a released grant, and locks no key',
    },
  },
  {
    name: 'a release that may have landed is told as a lease that was taken',
    changes: [change("seen === 'taken' && (outcome.unanswered", "seen === 'broken' && (outcome.unanswered")],
    test: {
      file: 'test/leases/faults.test.ts',
      name: 'release, and another caller takes the key before the next try: not said to have been taken from its holder',
    },
  },
  {
    name: 'an operator breaks whatever lease there is',
    promise: ONE_LOCK,
    changes: [change("'fence = :fence'", "'fence = :fence OR fence > :fence'")],
    only: 'leases',
    seed: 25,
  },
  {
    name: 'an expired lease is never taken over',
    promise: NO_STUCK_KEY,
    changes: [change('const cut = grant.acquiredAt - clockSkewMs;', 'const cut = grant.acquiredAt - 86_400_000;')],
    only: 'leases',
    seed: 1,
  },
  {
    name: 'a write that got no answer is told as one that was not made',
    changes: [change("if (unanswered && operation.kind === 'write')", "if (unanswered && operation.kind === 'read')")],
    test: {
      file: 'test/leases/faults.test.ts',
      name: 'acquire, until the SDK gives up: OutcomeUnknown names the id to ask with, which finds the grant',
    },
  },
  {
    name: 'a commit puts without any condition',
    promise: ONE_WINNER,
    changes: [change("...(expectedEtag === null ? { IfNoneMatch: '*' } : { IfMatch: expectedEtag }),", '')],
    only: 'commits',
    seed: 3,
  },
  {
    name: 'a commit drops the If-Match',
    promise: ONE_WINNER,
    changes: [change('{ IfMatch: expectedEtag }', '{}')],
    only: 'commits',
    seed: 3,
  },
  {
    name: 'a commit drops the If-None-Match',
    promise: NO_LOSS,
    changes: [change("{ IfNoneMatch: '*' }", '{}', 'shared/commits/write.ts')],
    only: 'commits',
    seed: 3,
  },
  {
    name: 'an older token of a fence commits',
    promise: STALE_FENCE,
    changes: [change('given.token >= stored.token', 'given.token >= 0')],
    only: 'commits',
    seed: 6,
  },
  {
    name: 'a fence is replaced twice after one commit',
    promise: NO_LOSS,
    changes: [
      change(
        'return object?.marks?.isReset ? resetBefore(request) : undefined;',
        'return object ? undefined : resetBefore(request);',
      ),
    ],
    only: 'commits',
    seed: 14,
  },
  {
    name: 'a fence is replaced and the ETag stays',
    promise: NO_LOSS,
    changes: [
      change(
        'return ranges(size, partBytes).length === parts ? 2 * partBytes : partBytes;',
        'return ranges(size, partBytes).length === parts ? 2 * partBytes : undefined;',
      ),
    ],
    only: 'commits',
    seed: 11,
  },
  {
    name: 'the fence is not written with the object',
    promise: NO_LOSS,
    changes: [change('...(fence && { [FENCE]', '...(fence && before === null && { [FENCE]')],
    only: 'commits',
    seed: 2,
  },
  {
    name: 'an object remembers only the last commit of its chain',
    promise: NO_LOSS,
    changes: [change('const commits = [...(before?.commits ?? []), entry];', 'const commits = [entry];')],
    only: 'commits',
    seed: 2,
  },
  {
    name: 'a repeat of a commit is not recognised',
    promise: NO_LOSS,
    changes: [
      change(
        'commits.find((entry) => entry.commitId === commitId)',
        'commits.find((entry) => entry.commitId === `${commitId}?`)',
      ),
    ],
    only: 'commits',
    seed: 2,
  },
  {
    name: 'a commit takes a write that got no answer for one that was not made',
    changes: [change('unanswered: tries.unanswered', 'unanswered: false')],
    test: {
      file: 'test/commits/faults.test.ts',
      name: 'an unknown outcome names its commit id, and a repeat with that id is definite',
    },
  },
  {
    name: "a foreign writer's record is taken over at once",
    promise: NO_LOSS,
    changes: [change('if (clock.now() < takeOverAt)', 'if (takeOverAt < 0)')],
    only: 'commits',
    seed: 12,
  },
  {
    name: "a foreign writer's record is overwritten",
    promise: NO_LOSS,
    changes: [
      change(
        "expression: 'attribute_not_exists(#path)'",
        "expression: 'attribute_not_exists(#path) OR attribute_exists(#path)'",
      ),
    ],
    only: 'commits',
    seed: 12,
  },
  {
    name: 'the first observation of a foreign record is forgotten between calls',
    promise: NO_STUCK_PATH,
    changes: [change('outcome.won ? item : (outcome.old ?? item)', 'outcome.won ? item : item')],
    only: 'commits',
    seed: 12,
  },
  {
    name: 'a publish may lower t',
    promise: REGISTERS,
    changes: [change('`${t} < :t`', '`${t} < :t OR ${t} >= :t`')],
    only: 'nameservice',
    seed: 2,
  },
  {
    name: 'a stale publish is told as an update',
    promise: REGISTERS,
    changes: [change("published(alias, current, { outcome: 'stale' })", 'published(alias, current)')],
    only: 'nameservice',
    seed: 3,
  },
  {
    name: 'a ref is set whatever it was',
    promise: REGISTERS,
    changes: [
      change(
        'const isExpected = isAt(pointerNames(ref, pointerStyle), expected);',
        "const isExpected = { expression: 'attribute_exists(pk)' };",
      ),
    ],
    only: 'nameservice',
    seed: 1,
  },
  {
    name: 'an index is replaced at its t whatever came between',
    changes: [change("[written, alsoRead, t, INDEX_REVISION, 'updated_at_ms']", '[t]')],
    test: {
      file: 'test/nameservice/faults.test.ts',
      name: 'a late first try of a reindex does not undo what others wrote at the same t',
    },
  },
  {
    name: 'a compare-and-set of an index asks for no revision',
    changes: [change('all(isExpected, isFirstAtItsT)', 'isExpected')],
    test: {
      file: 'test/nameservice/faults.test.ts',
      name: 'a late first try of a compare-and-set that was refused does not win when its expected value comes back',
    },
  },
  {
    name: 'a repair of an index keeps its revision',
    changes: [change("if (ref === 'index') {", 'if (false) {')],
    test: {
      file: 'test/nameservice/repair.test.ts',
      name: 'a repair of an index gives it a revision, so that no write undoes it that saw the index before; a commit has none',
    },
  },
  {
    name: 'a reindex that meets a lower t does not begin again',
    changes: [change('if (seen && current.t < target.t) {', 'if (false) {')],
    test: {
      file: 'test/nameservice/between-steps.test.ts',
      name: 'a replacement of an index at its t, which was set back, rises to it',
    },
  },
  {
    name: 'a reindex goes on though its first try may have been replaced',
    changes: [change('allowEqual && (old[INDEX_REVISION] || outcome.mayBeUndone)', 'false')],
    test: {
      file: 'test/nameservice/faults.test.ts',
      name: 'a late first try of a reindex cannot be told from a reindex that others replaced: the outcome is unknown, without a write',
    },
  },
  {
    name: 'a reindex goes on though a repair may have undone its first try',
    changes: [change('old[INDEX_REVISION] || outcome.mayBeUndone', 'old[INDEX_REVISION]')],
    test: {
      file: 'test/nameservice/repair.test.ts',
      name: 'a reindex without an answer does not take effect twice if others have raised the ref again: the outcome is unknown',
    },
  },
  {
    name: 'a reindex goes on though the item that its first try wrote was lost',
    changes: [change('second.mayBeUndone || first.unanswered', 'second.mayBeUndone')],
    test: {
      file: 'test/nameservice/repair.test.ts',
      name: 'a reindex without an answer does not take effect twice if the item is gone, and others have restored and raised it by the next try',
    },
  },
  {
    name: 'a repair bears a time before its own',
    changes: [change('integer(now + MARGIN_MS)', 'integer(now - MARGIN_MS)')],
    test: {
      file: 'test/nameservice/repair.test.ts',
      name: 'a write from before a repair does not land after a repair that had to wait for another repair',
    },
  },
  {
    name: 'an update writes into a layout that it does not know',
    changes: [change('all(isThere, isKnownLayout, condition,', 'all(isThere, condition,')],
    test: {
      file: 'test/nameservice/layout.test.ts',
      name: 'an alias with an unknown schema refuses publishCommit, names the schema, and stays as it is and readable',
    },
  },
  {
    name: 'a new definition of a graph source writes into a layout that it does not know',
    changes: [
      change('conditionFields(isKnownLayout, {', 'conditionFields(isThere, {'),
      change('import { isKnownLayout, isOf', 'import { isThere, isKnownLayout, isOf'),
    ],
    test: {
      file: 'test/nameservice/layout.test.ts',
      name: 'an alias of a graph source refuses a new definition, also if one of its items alone has an unknown schema',
    },
  },
  {
    name: 'a purge takes an alias at which branches began',
    changes: [change('isRetracted, hasNoBranches)', 'isRetracted)')],
    test: {
      file: 'test/nameservice/repair.test.ts',
      name: 'a repair by purge takes no alias at which branches of Fluree began, until they are dropped',
    },
  },
  {
    name: 'a deployment of native goes on next to the records of other clients',
    changes: [change('if (!found) return;', 'return;')],
    test: {
      file: 'test/deployment/foreign-commits.test.ts',
      name: 'a deployment of commitProtocol=native is refused while the record of another client stands in the commits table, on a running stack and on a new one',
    },
  },
  {
    name: "fences are lifted by the clock of the operator's machine, whatever AWS says",
    changes: [change('> MAX_OFFSET_MS)', '> Number.POSITIVE_INFINITY)')],
    test: {
      file: 'test/deployment/lift-fences.test.ts',
      name: 'the command that lifts fences refuses on a machine whose clock is two hours ahead of AWS, names both times, and lifts no fence',
    },
  },
  {
    name: 'a record with a lifted fence keeps its TTL',
    changes: [change('Number(seen.N) < kept', 'Number(seen.N) < 0')],
    test: {
      file: 'test/deployment/lift-fences.test.ts',
      name: 'a record with a lifted fence stays for the retention after the clock has passed the fence if it is free, and for a minute if it is held',
    },
  },
  {
    name: 'a ref is set back whatever it was',
    promise: REGISTERS,
    changes: [
      change(
        'const condition = isAt(names, expected);',
        "const condition = { expression: expected ? 'attribute_exists(pk)' : '' };",
      ),
    ],
    only: 'nameservice',
    seed: 289,
  },
  {
    name: 'a record that was removed after a try without an answer is told as never there',
    changes: [
      change(
        'return unanswered ? unknown(notFound(alias, wanted, found), operation) : notFound(alias, wanted, found);',
        'return notFound(alias, wanted, found);',
      ),
    ],
    test: {
      file: 'test/nameservice/removed.test.ts',
      name: 'a write publishCommit whose alias was removed before the next try is an unknown outcome, and creates no record again',
    },
  },
  {
    name: 'a ledger is made again by a call whose first try may have raised it',
    changes: [
      change('if (outcome.unanswered) return repeatOrLost(write, { actual: null, unanswered: true }, target);', ''),
    ],
    test: {
      file: 'test/nameservice/removed.test.ts',
      name: 'a write fastForwardCommit whose alias was removed before the next try is an unknown outcome, and creates no record again',
    },
  },
  {
    name: 'a status is set whatever it was',
    promise: REGISTERS,
    changes: [change('condition: hasStatus(expected)', "condition: { expression: 'attribute_exists(pk)' }")],
    only: 'nameservice',
    seed: 28,
  },
  {
    name: 'a config is set whatever it was',
    promise: REGISTERS,
    changes: [change('condition: all(isLedgerConfig, hasConfigVersion(expected.v))', 'condition: isLedgerConfig')],
    only: 'nameservice',
    seed: 6,
  },
  {
    name: 'a ledger is created over one that is there',
    promise: NEVER_DOWN,
    changes: [
      change("'attribute_not_exists(pk)'", "'attribute_not_exists(pk) OR attribute_exists(pk)'"),
      change("'attribute_not_exists(kind)'", "'attribute_not_exists(kind) OR attribute_exists(kind)'"),
    ],
    only: 'nameservice',
    seed: 8,
  },
  {
    name: 'a compare-and-set is told as lost though a try of it got no answer',
    promise: REGISTERS,
    changes: [
      change(
        'return unanswered ? unknown(conflict(alias, what, actual), operation) : conflict(alias, what, actual);',
        'return conflict(alias, what, actual);',
      ),
    ],
    only: 'nameservice',
    seed: 75,
  },
  {
    name: 'a task is told again where the reply was lost',
    changes: [
      change('maxAttempts: 1', 'maxAttempts: 3', 'shared/aws/step-functions.ts'),
      change('tries++ > 0', 'false'),
    ],
    test: {
      file: 'test/leases/grants-to-tasks.test.ts',
      name: 'a lost reply of SendTaskSuccess is not sent again at once, and “gone” at a later try moves no lease while the execution runs',
    },
  },
  {
    name: 'a message to a task goes over a connection that was idle',
    changes: [change('keepAlive: false', 'keepAlive: true', 'shared/aws/step-functions.ts')],
    test: {
      file: 'test/line/connections.test.ts',
      name: 'a closed idle connection to Step Functions loses no message to a task: each message has a connection of its own',
    },
  },
  {
    name: 'a question about an execution has a single try',
    changes: [change('!mayPass(tried.error)', 'tried.error')],
    test: {
      file: 'test/line/connections.test.ts',
      name: 'a question about an execution is asked again if the first answer was throttled',
    },
  },
  {
    name: 'a lease that is handed on keeps the execution of the one before',
    promise: ONE_HOLDER,
    changes: [change("'data', 'execution', 'target',", "'data', 'target',")],
    only: 'queue',
    seed: 19,
  },
  {
    name: 'a lease is handed on whatever became of it since it was read',
    promise: ONE_HOLDER,
    changes: [change('all(unchanged, isBelow(grant.fence))', 'isBelow(grant.fence)')],
    only: 'queue',
    seed: 10,
  },
  {
    name: 'a plain caller takes an expired lease from those who are parked',
    changes: [change('all(isUnmarked, canBeHad, isBelow(', 'all(canBeHad, isBelow(')],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'callers in line keep plain callers out, even of an expired grant',
    },
  },
  {
    name: 'a task that nobody answered for is taken for gone',
    promise: ONE_HOLDER,
    changes: [change("? 'throttled' : 'unanswered';\n}", "? 'throttled' : 'gone';\n}")],
    only: 'queue',
    seed: 32,
  },
  {
    name: 'a ticket goes although its task could not be told of the grant',
    changes: [
      change("if (notified.outcome === 'delivered') await deleteWaiter", 'if (notified.outcome) await deleteWaiter'),
    ],
    test: {
      file: 'test/leases/grants-to-tasks.test.ts',
      name: 'a task that the schedule notifies late begins with its whole ttl, also between the expiry and the margin of the clocks',
    },
  },
  {
    name: 'the schedule does not look at what expired',
    promise: NO_STUCK_KEY,
    changes: [change('takeoverAt(record, clockSkewMs) <= clock.now()', 'takeoverAt(record, clockSkewMs) < 0')],
    only: 'queue',
    seed: 21,
  },
  {
    name: 'tickets are taken from the newest on',
    promise: IN_ORDER,
    changes: [
      change(
        '      ConsistentRead: true,\n      ...(limit',
        '      ConsistentRead: true,\n      ScanIndexForward: false,\n      ...(limit',
      ),
    ],
    only: 'queue',
    seed: 3,
  },
  {
    name: 'a task whose cancelling got no answer is told as cancelled',
    changes: [change("if (delivery === 'unanswered')", 'if (delivery !== delivery)', 'shared/line/withdrawal.ts')],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a cancellation is answered that the task is gone, and the ticket stays, if Step Functions gives no answer',
    },
  },
  {
    name: "another client's lease is taken over in its last second",
    changes: [change('lease_expiry < :cutSeconds', 'lease_expiry <= :cutSeconds', 'shared/leases/conditions.ts')],
    test: {
      file: 'test/leases/compat.test.ts',
      name: 'records of the Rust crate are taken over when the crate itself would, plus the skew margin, and not a millisecond before',
    },
  },
  {
    name: 'the wait of a caller ends at another reading of the clock than the one that its lease counts from',
    changes: [
      change('...told, repeated', '...told, waitedMs: Math.max(0, (standing.acquiredAt ?? now) - arrivedAt), repeated'),
    ],
    test: {
      file: 'test/leases/clock-steps.test.ts',
      name: 'the deadline of a waiting caller passes before another caller has a lease, outside the line',
    },
  },
  {
    name: 'the wait of a task ends at another reading of the clock than the one that its lease counts from',
    changes: [
      change('...told, key', '...told, waitedMs: Math.max(0, grant.expiresAt - grant.ttlMs - ticket.parkedAt), key'),
    ],
    test: {
      file: 'test/leases/clock-steps.test.ts',
      name: 'the deadline of a parked task passes before another caller has a permit',
    },
  },
  {
    name: 'a caller whose answer comes after the expiry is told to work on for as long as the clock was set forth',
    changes: [change('Math.min(now, expiresAt) - since', 'now - since')],
    test: {
      file: 'test/leases/clock-steps.test.ts',
      name: 'a grant whose answer comes after its expiry gives its caller no time',
    },
  },
  {
    name: 'an object takes every chain for a whole one',
    promise: NO_LOSS,
    changes: [
      change('before === null || (before?.complete === true && commits.length <= MAX_COMMITS)', 'commits.length > 0'),
    ],
    only: 'commits',
    seed: 37,
  },
  {
    name: 'a commit without a fence lands on a fenced object',
    promise: NO_LOSS,
    changes: [change('return given !== undefined && given.key', 'return given === undefined || given.key')],
    only: 'commits',
    seed: 2,
  },
  {
    name: 'a record forgets the commits that it took the place of',
    promise: NO_LOSS,
    changes: [change('return [commitId, ...kept,', 'return [commitId, ...kept.slice(0, 0),')],
    only: 'commits',
    seed: 37,
  },
  {
    name: 'an item that was not lost is put back as it was in the beginning',
    promise: REGISTERS,
    changes: [
      change(
        'Item: initialItem(alias, concern, { now: clock.now(), style: pointerStyle }),\n    ...conditionFields(isAbsent),',
        'Item: initialItem(alias, concern, { now: clock.now(), style: pointerStyle }),',
      ),
    ],
    only: 'nameservice',
    seed: 17,
  },
  {
    name: 'a task is parked before its ticket is written',
    promise: NONE_FORGOTTEN,
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
    seed: 4,
  },
  {
    name: 'a ticket goes before its task is told',
    changes: [
      change(
        'const notified = await notifyLease(dependencies, grant, call);',
        `await deleteWaiter(dependencies, ticket, call);
  const notified = await notifyLease(dependencies, grant, call);`,
      ),
    ],
    test: {
      file: 'test/leases/grants-to-tasks.test.ts',
      name: 'a task that the schedule notifies late begins with its whole ttl, also between the expiry and the margin of the clocks',
    },
  },
  {
    name: 'a lease stays with a task that has gone',
    promise: NO_STUCK_KEY,
    changes: [change("if (outcome !== 'gone') {", 'if (outcome) {')],
    only: 'queue',
    seed: 1,
  },
  {
    name: 'a bound lease stays with a callback that was refused',
    promise: 'a task that was refused never holds',
    changes: [
      change("if (outcome !== 'gone') {", "if (outcome !== 'gone' || from.boundAt !== undefined) {"),
      change("if (delivery !== 'unanswered') await", "if (delivery === 'gone') await", 'shared/line/notify.ts'),
      change('if (mayWait && !isOverdue(waiter, dependencies.clock.now()))', 'if (mayWait)', 'shared/line/judge.ts'),
    ],
    only: 'queue',
    seed: 73,
  },
  {
    name: 'the clean-up deletes whatever has the key by now',
    changes: [
      change(
        'all(isSame(identity), ...(deletable ? [deletable] : []))',
        'aliased(`attribute_exists(#${Object.keys(identity)[0]})`)',
      ),
    ],
    test: { file: 'test/expiry/clean.test.ts', name: 'a clean-up spares, each for its reason, what it may not delete' },
  },
  {
    name: 'the clean-up ends a permit that its holder has extended',
    changes: [change('#f = :fence AND #h.e = :e AND #h.b = :b', '#f = :fence AND :e = :e AND :b = :b')],
    test: {
      file: 'test/expiry/permits.test.ts',
      name: 'the clean-up spares a permit whose holder extended it between report and clean: changed, and changed again',
    },
  },
  {
    name: 'the clean-up ends a permit whose place the line is to give',
    changes: [change('isReported(identity), isUnmarked)', 'isReported(identity))')],
    test: {
      file: 'test/expiry/permits.test.ts',
      name: 'the clean-up spares a permit while a waiter is in line: the line takes its room',
    },
  },
  {
    name: 'the report takes a pool for an expired lease',
    changes: [change('all(isLease, any(isAbandoned(now, margins)', 'all(any(isAbandoned(now, margins)')],
    test: {
      file: 'test/expiry/permits.test.ts',
      name: 'an empty pool with a mark, or of which another client wrote entries that are not in use, is not reported',
    },
  },
  {
    name: 'the clean-up deletes an empty pool that was used since the report',
    changes: [
      change("['formed', 'used', 'fence', 'waiters', 'lease_expiry'] as const", "['used', 'waiters'] as const"),
    ],
    test: { file: 'test/expiry/permits.test.ts', name: 'an empty pool that has changed since the report is spared' },
  },
  {
    name: 'the clean-up deletes an empty pool with a line',
    changes: [
      change(
        "['formed', 'used', 'fence', 'waiters', 'lease_expiry'] as const",
        "['formed', 'used', 'fence', 'lease_expiry'] as const",
      ),
    ],
    test: { file: 'test/expiry/permits.test.ts', name: 'an empty pool that has changed since the report is spared' },
  },
  {
    name: 'the clean-up deletes an empty pool whose fence is ahead of the clock',
    changes: [
      change('return rises || isPermit(row) ||', "return rises || isPermit(row) || row.kind === 'emptyPool' ||"),
    ],
    test: {
      file: 'test/expiry/permits.test.ts',
      name: 'an empty pool is spared while its retention lasts, or its fence is ahead of the clock',
    },
  },
  {
    name: 'the clean-up deletes what is younger than fences are kept',
    promise: NO_LIVE_RECORD,
    changes: [change('Math.max(asked, fenceRetentionSeconds)', 'Math.min(asked, fenceRetentionSeconds)')],
    only: 'expiry',
    seed: 14,
  },
  {
    name: 'a task is told less than its ttl',
    promise: WHOLE_TTL,
    changes: [change('- MAX_SHORTFALL_MS;', '- 20 * MAX_SHORTFALL_MS;')],
    only: 'queue',
    seed: 3,
  },
  {
    name: 'the request of a grant that nobody got is remembered as released',
    changes: [change("', request_id, holder, principal, ticket'", "', principal, ticket'")],
    test: {
      file: 'test/leases/undelivered.test.ts',
      name: 'a request may ask again if its grant was never delivered: after a release gave it to the dead ticket',
    },
  },
  {
    name: 'the wrapper lets its target run on after the lease',
    promise: TARGETS_ALONE,
    changes: [
      change(
        '$min([$states.input.grant.remainingMs, $toMillis($states.input.grant.expiresAt) - $toMillis($states.context.State.EnteredTime)]) - 500',
        '$states.input.request.ttlSeconds * 1000 + 20000',
      ),
    ],
    only: 'queue',
    seed: 19,
  },
  {
    name: 'the wrapper releases its lease after a start that may still land',
    changes: [change('"Default": "Did the target fail?"', '"Default": "Release after failure"')],
    test: { file: 'test/step-functions/exits.test.ts', name: 'the wrapper keeps the lease when its start ended by' },
  },
  {
    name: 'the wrapper releases its lease while functions of a failed target may go on',
    changes: [
      change(
        '"Variable": "$.request.graceSeconds", "NumericGreaterThan": 0',
        '"Variable": "$.request.graceSeconds", "NumericGreaterThan": 900',
      ),
    ],
    test: {
      file: 'test/step-functions/exits.test.ts',
      name: 'the wrapper with graceSeconds does not release the lease after',
    },
  },
  {
    name: 'a redriven wrapper repeats the request whose grant has ended',
    changes: [
      change(
        "States.Format('{}-{}', $.requestId, $$.Execution.RedriveCount)",
        "States.Format('{}-{}', $.requestId, $.requestId)",
      ),
    ],
    test: { file: 'test/step-functions/exits.test.ts', name: 'a redrive of exclusive' },
  },
  {
    name: 'a transfer undoes the lift of a fence',
    changes: [change('const condition = all(unchanged, isBelow(grant.fence));', 'const condition = unchanged;')],
    test: {
      file: 'test/leases/standstills.test.ts',
      name: 'a fence that rises while a call is paused stays: of a held lease, lifted by the command for restored tables',
    },
  },
  {
    name: 'a free record that others have had since is known by being free, and by a fence that may not rise',
    changes: [
      change(
        "      : { expression: 'fence = :free', values: { ':free': fenceValue } },",
        "      : { expression: 'attribute_exists(fence)' },",
      ),
      change('const condition = all(unchanged, isBelow(grant.fence));', 'const condition = unchanged;'),
    ],
    test: {
      file: 'test/leases/paused-hand-offs.test.ts',
      name: 'a transfer whose first try arrives after others have come and gone keeps the fence',
    },
  },
  {
    name: 'a key without a record is known by being free',
    changes: [
      change(
        "      ? { expression: 'attribute_not_exists(fence)' }",
        "      ? { expression: 'attribute_not_exists(lease_version)' }",
      ),
    ],
    test: {
      file: 'test/leases/standstills.test.ts',
      name: 'a paused call does not follow a key without a record that another caller has held since',
    },
  },
  {
    name: 'the mark of a free record that names nobody is known by its count',
    changes: [
      change(
        "      ? { expression: 'attribute_not_exists(next_ticket)' }",
        "      ? { expression: 'attribute_exists(waiters)' }",
      ),
    ],
    test: {
      file: 'test/leases/standstills.test.ts',
      name: 'a paused call does not remove the mark that began again if the mark before named no waiter',
    },
  },
  {
    name: 'the mark of a lease that stays held is known by its count',
    changes: [
      change(
        'const condition = all(grantUnchanged(record), lineUnchanged(record));',
        'const condition = lineUnchanged(record);',
      ),
    ],
    test: {
      file: 'test/leases/standstills.test.ts',
      name: 'a call that stood still does not clear the mark that began again on a lease that stays held',
    },
  },
  {
    name: 'a renewal extends whatever grant stands',
    changes: [
      change(
        "    condition: isStillHeld(record),\n    values: { ':version'",
        "    condition: set.includes('lease_expiry') ? { expression: 'attribute_exists(lease_version)' } : isStillHeld(record),\n    values: { ':version'",
      ),
    ],
    test: {
      file: 'test/leases/standstills.test.ts',
      name: 'a renewal that stood still does not extend the grant of the next holder',
    },
  },
  {
    name: 'a renewal does not know its own first try',
    changes: [
      change(
        "values: { ':version': text(version), ...values },\n    version,",
        "values: { ':version': text(version), ...values },\n    ...(!set.includes('lease_expiry') && { version }),",
      ),
    ],
    test: {
      file: 'test/leases/grants-to-tasks.test.ts',
      name: 'a task that its granter notifies late begins with its whole ttl if the renewal loses one answer',
    },
  },
  {
    name: 'nobody looks at the clock again after a renewal',
    changes: [change('&& !isShort(grant, now)', '&& (renewals > 0 || !isShort(grant, now))')],
    test: {
      file: 'test/leases/grants-to-tasks.test.ts',
      name: 'a task that its granter notifies late begins with its whole ttl if the renewal loses two answers',
    },
  },
  {
    name: 'a lease is taken over in the millisecond before its margin is over',
    changes: [change("'expires_at < :cut OR", "'expires_at <= :cut OR")],
    test: {
      file: 'test/leases/acquire.test.ts',
      name: 'acquire takes over an expired lease on the first call, and not a millisecond before expiry and clock skew margin',
    },
  },
  {
    name: 'a transfer leaves the mark of a break on the record',
    changes: [change("'released_at', 'broken_at'],", "'released_at'],")],
    test: {
      file: 'test/leases/paused-hand-offs.test.ts',
      name: 'a transfer keeps no attribute of a broken grant, so that a repeated release counts as a release',
    },
  },
  {
    name: 'the mark of a queue is cleared though somebody came',
    changes: [
      change(
        'const condition = all(grantUnchanged(record), lineUnchanged(record));',
        'const condition = grantUnchanged(record);',
      ),
      change(
        'undecided ? grantUnchanged(from) : all(grantUnchanged(from), lineUnchanged(from));',
        'grantUnchanged(from);',
      ),
    ],
    test: {
      file: 'test/leases/paused-hand-offs.test.ts',
      name: 'a release hands off the lease to a task that parks at the same time',
    },
  },
  {
    name: 'a token of another key is taken for that of the fence',
    changes: [
      change('given !== undefined && given.key === stored.key && given.token', 'given !== undefined && given.token'),
    ],
    test: { file: 'test/commits/fence.test.ts', name: 'a fenced object refuses another key, and is unchanged' },
  },
  {
    name: 'a status is compared by its version alone',
    changes: [change('...all(hasV, hasState)', '...all(hasV)')],
    test: { file: 'test/nameservice/compat.test.ts', name: "Fluree's test_status_push_conflict_wrong_expected passes" },
  },
  {
    name: 'the schedule tells a grant without giving it a new version',
    changes: [
      change(
        "values: { ':version': text(version), ...values }",
        "values: { ':version': text(set.includes('lease_expiry') ? record.version : version), ...values }",
      ),
    ],
    test: {
      file: 'test/leases/grants-to-tasks.test.ts',
      name: 'a schedule that sends first rotates the version: its “gone” and that of the granter transfer no lease',
    },
  },
  {
    name: 'the end of an execution frees a lease that somebody is parked for',
    changes: [change('isOfExecution(record.execution), isUnmarked);', 'isOfExecution(record.execution));')],
    test: {
      file: 'test/leases/line.test.ts',
      name: 'a lock goes to the next task when its execution ends, or is free',
    },
  },
  {
    name: 'a native create takes any landed commit of its id for its own',
    changes: [change('!this.#isOwnWrite(verdict.object)', '!this.#unanswered')],
    test: {
      file: 'test/commits/faults.test.ts',
      name: 'a repeat whose first try gets no answer is a repeat all the same',
    },
  },
  {
    name: 'an observation proves what came before it was made',
    changes: [change('foreignFrom === 0 &&', 'foreignFrom >= 0 &&')],
    test: {
      file: 'test/commits/compat.test.ts',
      name: 'a repeat has an unknown outcome if the foreign record had taken the place of a record of Holdfast',
    },
  },
  {
    name: 'an observation proves what came after it',
    changes: [change('generation >= record.generation - 1 &&', 'generation >= 0 &&')],
    test: {
      file: 'test/commits/compat.test.ts',
      name: 'a repeat has an unknown outcome if a record of Holdfast came between foreign records',
    },
  },
  {
    name: 'an observation outlives the record that it is about',
    changes: [change('now + clockSkewMs < endsAt', 'now + clockSkewMs < endsAt + 1e9')],
    test: {
      file: 'test/commits/compat.test.ts',
      name: 'a repeat has an unknown outcome if TTL may have deleted the foreign record (3601 s later)',
    },
  },
  {
    name: 'a fence is replaced that nobody saw',
    changes: [change('if (fence?.key !== seen.key || fence.token !== seen.token)', 'if (fence?.key !== seen.key)')],
    test: {
      file: 'test/commits/reset-fence.test.ts',
      name: 'the fence of an object is left alone if there is a higher token',
    },
  },
  {
    name: 'a fence is replaced twice between two commits',
    changes: [change('return object?.marks?.isReset ? resetBefore(request) : undefined;', 'return undefined;')],
    test: {
      file: 'test/commits/reset-fence.test.ts',
      name: 'the fence of an object is replaced once between two commits',
    },
  },
  {
    name: 'a fence is replaced under the same ETag',
    changes: [change('if (partBytes === undefined) return content;', 'if (partBytes !== 0) return content;')],
    test: {
      file: 'test/commits/reset-fence.test.ts',
      name: 'the fence of an object admits no commit that was decided on the fence before',
    },
  },
  {
    name: 'a fence token may come from the far future',
    changes: [change('if (fence.token <= highest) return;', 'if (fence.token <= highest * 1e6) return;')],
    test: {
      file: 'test/commits/input.test.ts',
      name: 'bad input names its field and causes no write: a fence in microseconds',
    },
  },
  {
    name: 'a commit takes what was uploaded after its caller looked',
    changes: [change('if (expectedEtag !== undefined && etag !== expectedEtag)', "if (expectedEtag === '')")],
    test: {
      file: 'test/commits/upload.test.ts',
      name: 'a copy takes the very bytes that sourceEtag names, and no others',
    },
  },
  ...QUEUE_BOUNDS,
  ...QUEUE_LINE,
  ...QUEUE_WAITS,
  ...POOLS,
  ...KINDS,
  ...ONCE,
  ...ATTACKS,
  ...BOUND_GRANTS,
  ...EXECUTIONS,
  ...BREAKS,
  ...CALLBACKS,
  ...DURABLE,
  {
    name: 'the client trusts its monotonic clock alone',
    changes: [change('Math.max(by.wall() - wall, by.monotonic() - monotonic);', 'by.monotonic() - monotonic;')],
    test: { file: 'test/client/clocks.test.ts', name: 'no lease is held past its true end' },
  },
  {
    name: 'the client trusts its wall clock alone',
    changes: [change('Math.max(by.wall() - wall, by.monotonic() - monotonic);', 'by.wall() - wall;')],
    test: { file: 'test/client/clocks.test.ts', name: 'no lease is held past its true end' },
  },
  {
    name: 'the client counts an extension from its answer',
    changes: [change('extend(next, at, 0);', 'extend(next, moment(by), 0);')],
    test: { file: 'test/client/clocks.test.ts', name: 'no lease is held past its true end' },
  },
  {
    name: 'a late heartbeat revives a lease of the client',
    changes: [
      change(
        `      if (check()) return;
      extend(next, at, 0);`,
        '      extend(next, at, 0);',
      ),
    ],
    test: {
      file: 'test/client/lease.test.ts',
      name: 'a lost lease stays lost, also if the answer to a heartbeat comes too late',
    },
  },
  {
    name: 'a release of the client overtakes its heartbeat',
    changes: [change('const underWay = beating;', 'const underWay = undefined as typeof beating;')],
    test: { file: 'test/client/lease.test.ts', name: 'a release waits for the heartbeat under way, and starts none' },
  },
  {
    name: 'the client sends heartbeats as seldom as a long ttl allows',
    changes: [change('Math.min(ttlMs / 3, MAX_INTERVAL_MS) *', '(ttlMs / 3) *')],
    test: {
      file: 'test/client/lease.test.ts',
      name: 'heartbeats come at least every 20 seconds, however long the ttl, so that a holder is soon notified that its lease is broken',
    },
  },
  {
    name: 'the client does not release a lease that was broken',
    changes: [change("gone = error.reason !== 'broken';", 'gone = true;')],
    test: {
      file: 'test/client/lease.test.ts',
      name: 'a lease is lost when the service says that it was broken; the release after the work hands off the key',
    },
  },
  {
    name: 'the client leaves a broken grant whose answer was lost to its ttl',
    changes: [
      change(
        `      takeBack(0);
      askAnew();`,
        '      askAnew();',
      ),
    ],
    test: {
      file: 'test/client/hostile.test.ts',
      name: 'a service that ended a grant whose answer was lost is asked again by the caller, unless an operator refused the wait',
    },
  },
  {
    name: 'withLease of the client forgives a loss',
    changes: [change('if (lease.lost) throw lease.lost;', '')],
    test: {
      file: 'test/client/lease.test.ts',
      name: 'the function withLease throws LeaseLost with the reason if the work succeeds after the loss',
    },
  },
  {
    name: 'a retry of the client is another acquisition',
    changes: [
      change(
        'requestId, ...retryWith, waitSeconds }, { ms })',
        'requestId: by.uuid(), ...retryWith, waitSeconds }, { ms })',
      ),
    ],
    test: {
      file: 'test/client/acquire.test.ts',
      name: 'an acquisition has one requestId over all retries, and counts from the last try',
    },
  },
  {
    name: 'an aborted wait of the client keeps what it brings',
    changes: [
      change('if (lease.held && !signal?.aborted) {', 'if (lease.held) {'),
      change("(signal?.aborted && 'release' in got ? got.release() : resolve(got))", 'resolve(got)'),
    ],
    test: {
      file: 'test/client/acquire.test.ts',
      name: 'an aborted wait ends at once, and releases a grant that comes later',
    },
  },
  {
    name: 'the client leaves a doubtful grant behind',
    changes: [change('if (doubt) takeBack(', 'if (doubt && !doubt) takeBack(')],
    test: {
      file: 'test/client/acquire.test.ts',
      name: 'a wait that ends in doubt is withdrawn at once, and again under its own name if the answer of the request is lost',
    },
  },
];
