"""Written from contract/ by npm run contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypedDict, cast, overload

from .arguments import OMITTED, Omitted, given, sent
from .errors import HoldfastError
from .pages import apaged, paged

VERSION = "0.3.0"

# The method of each call, and its path below /v1/.
ROUTES: dict[str, tuple[str, str]] = {
    "acquire": ("POST", "leases/acquire"),
    "heartbeat": ("POST", "leases/heartbeat"),
    "release": ("POST", "leases/release"),
    "breakLease": ("POST", "leases/break"),
    "readLeases": ("GET", "leases"),
    "cancelWaiter": ("POST", "leases/cancel"),
    "capKey": ("POST", "leases/cap"),
    "runNext": ("POST", "leases/next"),
    "withdraw": ("POST", "leases/withdraw"),
    "onceBegin": ("POST", "once/begin"),
    "onceComplete": ("POST", "once/complete"),
    "onceForget": ("POST", "once/forget"),
    "readOnce": ("GET", "once"),
    "rateReserve": ("POST", "rates/reserve"),
    "rateSettle": ("POST", "rates/settle"),
    "rateForget": ("POST", "rates/forget"),
    "readRates": ("GET", "rates"),
    "commit": ("POST", "commits"),
    "readCommit": ("GET", "commits"),
    "stageUpload": ("POST", "uploads"),
    "resetFence": ("POST", "commits/reset-fence"),
    "readInFlight": ("GET", "commits/in-flight"),
    "publish": ("POST", "nameservice/publish"),
    "repairNames": ("POST", "nameservice/repair"),
    "readNames": ("GET", "nameservice"),
    "report": ("POST", "expired/report"),
    "readExpired": ("GET", "expired"),
    "clean": ("POST", "expired/clean"),
    "readContract": ("GET", "../openapi.json"),
    "readHealth": ("GET", "health"),
    "whoami": ("GET", "whoami"),
}

CleanUpStoppedBy: TypeAlias = Literal["time", "Throttled", "Unavailable", "OutcomeUnknown"]
CleanedRecordWhy: TypeAlias = Literal[
    "tooYoung",
    "ageUnknown",
    "neverDeletable",
    "leftToQueue",
    "partOfRecord",
    "fenceAhead",
    "unrecognisable",
    "changed",
    "gone",
]
ExpiredRecordKind: TypeAlias = Literal[
    "abandonedLease",
    "releasedLease",
    "abandonedPermit",
    "holderEnded",
    "holderUnknown",
    "abandonedRun",
    "endedRun",
    "commit",
    "firstSight",
    "waiter",
    "upload",
    "nameserviceRow",
]
ExpiredRecordTtlFault: TypeAlias = Literal["milliseconds", "missing", "notANumber", "notATime", "olderThanFiveYears"]
KeySummaryState: TypeAlias = Literal["held", "expired", "released", "free"]
LedgerMissing: TypeAlias = Literal["config", "head", "index", "meta", "status"]
LossReason: TypeAlias = Literal[
    "released",
    "taken",
    "broken",
    "superseded",
    "unknown",
    "cancelled",
    "deadline",
    "maxHold",
    "forked",
]
NotReleasedReason: TypeAlias = Literal["taken", "broken", "superseded", "unknown"]
OnceNotCompletedReason: TypeAlias = Literal["released", "taken", "broken", "unknown"]
PreviousHolderEnded: TypeAlias = Literal["released", "expired", "broken", "executionEnded", "superseded"]
RepairedOp: TypeAlias = Literal["resetRef", "resetStatus", "resetConfig", "unretract", "purge"]
Sort: TypeAlias = Literal["key", "expiry", "held", "waiting"]
State: TypeAlias = Literal["held", "expired", "released", "free", "active"]
WhoamiAuthorizedBy: TypeAlias = Literal["iam", "jwt", "lambda", "nobody"]


class _AcquiredGrant(TypedDict):
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    holder: str
    """The name that the holder gives itself, for people who read the key. It proves nothing."""
    leaseId: str
    """The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it."""
    version: str
    """A UUID that changes with each heartbeat. It is a secret."""
    fence: int
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    acquiredAt: str
    """When the lease or the permit was granted."""
    expiresAt: str
    """When the lease or the permit expires, unless a heartbeat extends it."""
    remainingMs: int
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""
    waitedMs: int
    repeated: bool
    """True if the request already had its grant, because the call is a retry or a response was lost."""
    previous: PreviousHolder | None
    """The holder before."""


class AcquiredGrant(_AcquiredGrant, total=False):
    """The grant of the caller. Only a permit has `mode`, `limit`, `weight` and `used`."""

    bound: Literal[True]
    """True if the grant lasts as long as its execution, without heartbeats. Absent otherwise."""
    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log."""
    mode: Literal["shared", "exclusive"]
    """How the key is held: together with other holders (`shared`), or alone (`exclusive`)."""
    limit: int | None
    """The limit that this request names, or 200."""
    weight: int
    """How much of the limit the grant takes. 1 for `exclusive`."""
    used: int
    """The total weight of all holders."""
    limitChanged: AcquiredGrantLimitChanged
    """Present if the grant before named another limit: callers of the key may disagree about its limit."""


AcquiredGrantLimitChanged = TypedDict("AcquiredGrantLimitChanged", {"from": int, "to": int})
"""Present if the grant before named another limit: callers of the key may disagree about its limit."""


class Broken(TypedDict):
    """The lease or the permit that an operator has broken."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    broken: Literal[True]
    """The grant has ended, or is ending."""
    fence: int
    """The fence of the grant that was broken."""
    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    ended: bool
    """True if the next caller can already have the key."""
    holderUntil: str | None
    """When the grant would have expired."""
    lastHeartbeatAt: str | None
    """When the last heartbeat came. Null if there was none, or the record does not say."""


class Cancelled(TypedDict):
    """The task or the call is out of the line, and fails with `LeaseLost`."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    ticket: str
    """The id of a waiter in the line. Tickets sort by arrival."""
    cancelled: Literal[True]
    """The waiter is out of the line."""


class Cap(TypedDict):
    """What an operator allows for a key, whatever limit or rates the callers name."""

    limit: int | None
    """The highest total weight of all holders."""
    rates: list[NamedRate] | None
    """The rates that count for every reservation."""
    reason: str
    """Why the key is capped, in the words of the operator."""
    by: str | None
    """The operator: an IAM ARN or the subject of a JWT, up to 256 characters."""
    since: str
    """When the operator set the cap."""
    until: str | None
    """When the cap ends by itself. Null if it lasts until an operator lifts it."""


class _CapRate(TypedDict):
    limit: int
    """How many units may start in each period."""
    per: str
    """The period: a number and `s`, `m`, `h` or `d`, at most 31 days."""


class CapRate(_CapRate, total=False):
    """One to four rates with different names.

    They count for each reservation as if its caller had named them. Null lifts this part of the cap. Without the field,
    this part stays as it is.
    """

    name: str
    """The name of the rate."""


class Capped(TypedDict):
    """The cap of the key from now on."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    cap: Cap | None
    """The cap from now on. Null if the key has none."""
    before: Cap | None
    """The cap before this call. Null if there was none."""
    used: int
    """The total weight of all holders."""
    waiting: int
    """How many tasks and calls are in line at most: the record still counts some that have left."""


class CleanUp(TypedDict):
    """What a clean-up has done, or with `dryRun` what it would do."""

    reportId: str
    """The id of the report."""
    dryRun: bool
    """If true, nothing was deleted, and `deleted` shows what a clean-up would try to delete."""
    olderThanSeconds: float
    """The `olderThanSeconds` of the request, or the parameter `fenceRetentionSeconds` if that is longer."""
    deleted: Deleted
    spared: Spared
    stoppedBy: CleanUpStoppedBy | None
    """Why the clean-up stopped before the end of the report. Call again with `nextCursor`."""
    nextCursor: str | None
    """To read the next page, send it as `cursor`. Null on the last page."""


class _CleanedRecord(TypedDict):
    kind: ExpiredRecordKind
    """The kind of the record."""
    key: dict[str, str]
    """The key attributes of the record, the key of an object as `path`, or `key` and `fence` of a permit."""
    holder: str | None
    """The holder or writer. Null if the record does not say."""
    expiredAt: str | None
    """When the record expired. Null if the record does not say."""


class CleanedRecord(_CleanedRecord, total=False):
    """A reported record that was deleted or spared."""

    why: CleanedRecordWhy
    """Why the record was spared."""


class _Commit(TypedDict):
    path: str
    """The key of the object in the bucket."""
    etag: str | None
    """The ETag of the committed object, with its quotes. Null if the object has been replaced since."""
    size: int | None
    """The size in bytes. Null if `etag` is null."""
    commitId: str
    """The id of one commit. If the request has none, the service chooses one."""
    protocol: Literal["dynamo", "native"]
    """The commit protocol of the deployment."""
    repeated: bool
    """True if an earlier try of this commit may be the one that took effect."""


class Commit(_Commit, total=False):
    """A commit that has taken effect."""

    currentEtag: str
    """The ETag of the object that is there now, if `etag` is null."""
    versionId: str
    """The version of the object, if the bucket has versions."""
    generation: int
    """How often a commit has taken over the record of another one for the same precondition."""


class CommitFence(TypedDict):
    """Ties the object to a lease, so that a former holder can no longer replace it: only commits with this key and a
    token at least as high can.
    """

    key: str
    """The key of the lease."""
    token: int
    """The `fence` of the grant. At most a day ahead of the current time in milliseconds since 1970."""


class CommitInFlight(TypedDict):
    """A commit that has begun and has not replaced the object. Its writer may have exited."""

    generation: int
    """How often a commit has taken over the record of another one for the same precondition."""
    timeoutMs: int | None
    """How long the writer may take, in milliseconds."""
    commitId: str | None
    """The id of one commit. Null for a third-party client."""
    writtenAt: str | None
    """When the commit began. Null for a third-party client."""


class CompareAndSetRefExpected(TypedDict):
    """The ref that the alias must have. Null if the alias must not exist, and is created as a ledger."""

    address: str | None
    """Where the commit or the index is stored."""
    t: int
    """The watermark: a whole number that only a repair lowers."""


class CompareAndSetRefNext(TypedDict):
    """The ref to set."""

    address: str
    """Where the commit or the index is stored."""
    t: int
    """The watermark: a whole number that only a repair lowers."""


class Deleted(TypedDict):
    """The records that were deleted, or would be."""

    count: int
    """The number of records."""
    by: DeletedBy
    """The number of records, by kind."""
    records: list[CleanedRecord]
    """The first 100 records."""


class DeletedBy(TypedDict, total=False):
    """The number of records, by kind."""

    abandonedLease: int
    releasedLease: int
    abandonedPermit: int
    holderEnded: int
    holderUnknown: int
    abandonedRun: int
    endedRun: int
    commit: int
    firstSight: int
    waiter: int
    upload: int
    nameserviceRow: int


class ExpiredIdentityValue(TypedDict):
    """The attributes by which the clean-up recognises the record. An attribute that the record lacks is null."""

    S: str


class ExpiredIdentityValue2(TypedDict):
    """The attributes by which the clean-up recognises the record. An attribute that the record lacks is null."""

    N: str


class ExpiredRecord(TypedDict):
    """A record that has expired and still exists."""

    kind: ExpiredRecordKind
    """The kind of the record."""
    key: dict[str, str]
    """The key attributes of the record, the key of an object as `path`, or `key` and `fence` of a permit."""
    holder: str | None
    """The holder or writer. Null if the record does not say."""
    expiredAt: str | None
    """When the record expired. Null if the record does not say."""
    ageSeconds: int
    """For how long the record had been expired when the report read it, in seconds. 0 if `expiredAt` is null."""
    reason: str
    """Why the record is reported, for people."""
    neverDeletable: bool
    """True if DynamoDB's TTL can never delete the row."""
    ttlFault: ExpiredRecordTtlFault | None
    """Why the TTL cannot delete the row. Null if it can."""
    identity: dict[str, ExpiredIdentityValue | ExpiredIdentityValue2 | None] | None
    """The attributes by which the clean-up recognises the record. An attribute that the record lacks is null."""


class ExpiredTallies(TypedDict):
    """The expired records, by kind."""

    abandonedLease: ExpiredTally
    releasedLease: ExpiredTally
    abandonedPermit: ExpiredTally
    holderEnded: ExpiredTally
    holderUnknown: ExpiredTally
    abandonedRun: ExpiredTally
    endedRun: ExpiredTally
    commit: ExpiredTally
    firstSight: ExpiredTally
    waiter: ExpiredTally
    upload: ExpiredTally
    nameserviceRow: ExpiredTally


class ExpiredTally(TypedDict):
    """The expired records of a kind."""

    count: int
    """The number of records."""
    oldestAgeSeconds: int
    """The age of the oldest record, in seconds."""


class Fence(TypedDict):
    """The fence of an object: only commits with this key and a token at least as high replace the object."""

    key: str
    """The key of the lease."""
    token: int
    """The highest token that has written the object."""


class _FullHolder(TypedDict):
    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    mode: Literal["shared", "exclusive"]
    """How the key is held: together with other holders (`shared`), or alone (`exclusive`)."""
    weight: int
    """How much of the limit the grant takes. 1 for `exclusive`."""
    expiresAt: str | None
    """When the lease or the permit expires, unless a heartbeat extends it. Null if the record does not say."""
    acquiredAt: str | None
    """When the lease or the permit was granted. Null if the record does not say."""
    remainingMs: int | None
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""
    ttlSeconds: float | None
    """How long the grant lasts from each heartbeat, in seconds. Null if the record does not say."""
    execution: str | None
    """The ARN of the execution that holds the grant, or held it until the execution ended."""
    bound: bool
    """True if the grant lasts until its execution ends, without heartbeats."""
    inGrace: bool
    ending: bool
    """True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop."""
    brokenAt: str | None
    """When an operator broke the grant. Null if no operator did, or the record does not say."""
    brokenBy: str | None
    """The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters."""
    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none."""
    state: Literal["held", "expired"]
    """Whether the grant has expired. A heartbeat revives an expired grant, until another grant replaces it."""


class FullHolder(_FullHolder, total=False):
    """A holder of a key, as every reader sees it."""

    supersededBy: str
    """The holder of the newer request that has asked this holder to stop. The grant is then `ending`."""


class _Grant(TypedDict):
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    holder: str
    """The name that the holder gives itself, for people who read the key. It proves nothing."""
    leaseId: str
    """The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it."""
    version: str
    """A UUID that changes with each heartbeat. It is a secret."""
    fence: int
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    acquiredAt: str
    """When the lease or the permit was granted."""
    expiresAt: str
    """When the lease or the permit expires, unless a heartbeat extends it."""
    remainingMs: int
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""


class Grant(_Grant, total=False):
    """A lease or a permit, as its holder sees it."""

    bound: Literal[True]
    """True if the grant lasts as long as its execution, without heartbeats. Absent otherwise."""
    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log."""


class _GraphSource(TypedDict):
    alias: str
    """The alias, as `name:branch`."""
    name: str
    """The part of the alias before the colon."""
    branch: str
    """The part of the alias after the colon."""
    retracted: bool
    """True if the alias is retracted. A retracted alias stays visible."""
    index: Pointer
    status: Status
    updatedAt: str
    """When an item of the record was last written."""
    kind: Literal["graph_source"]
    """The kind of the alias."""
    sourceType: str
    """The type of the graph source, such as `db:Bm25Index`."""
    dependencies: list[str]
    """The aliases from which the graph source is made."""
    config: GraphSourceConfig


class GraphSource(_GraphSource, total=False):
    """The record of a graph source."""

    missing: list[LedgerMissing]
    """Items of the record that are missing. The next write to such an item restores it."""
    oversized: Literal[True]


class GraphSourceConfig(TypedDict):
    """The config of a graph source."""

    v: int
    """The version, which rises with each publish."""
    value: Any
    """The config."""


class Health(TypedDict):
    """The health of the deployment."""

    status: Literal["ok"]
    """The deployment answers."""
    version: str
    """The version of the deployment."""


class HeldLeases(TypedDict):
    """The leases and permits that are held in a namespace."""

    namespace: str
    """The namespace."""
    leases: int
    """The number of leases and permits."""


class Holder(TypedDict):
    """A holder of a key, in short."""

    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    mode: Literal["shared", "exclusive"]
    """How the key is held: together with other holders (`shared`), or alone (`exclusive`)."""
    weight: int
    """How much of the limit the grant takes. 1 for `exclusive`."""
    expiresAt: str | None
    """When the lease or the permit expires, unless a heartbeat extends it. Null if the record does not say."""


class InFlightPage(TypedDict):
    """A page of commits in flight. A page may be empty and still have a cursor."""

    protocol: Literal["dynamo", "native"]
    """The commit protocol of the deployment."""
    commits: list[PathInFlight]
    """The commits, in no particular order."""
    nextCursor: str | None
    """To read the next page, send it as `cursor`. Null on the last page."""


class Issue(TypedDict):
    """One fault of a request."""

    path: str
    """The field, as a path with dots into the request. Or the part of the HTTP request."""
    message: str
    """What is wrong with the field."""


class _Key(TypedDict):
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    state: KeySummaryState
    """Whether a caller holds the key."""
    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    expiresAt: str | None
    """When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key."""
    acquiredAt: str | None
    """When the lease or the permit was granted. Null if the record does not say."""
    remainingMs: int | None
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""
    ttlSeconds: float | None
    """How long the grant lasts from each heartbeat, in seconds. Null if the record does not say."""
    execution: str | None
    """The ARN of the execution that holds the grant, or held it until the execution ended."""
    bound: bool
    """True if the grant lasts until its execution ends, without heartbeats."""
    inGrace: bool
    ending: bool
    """True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop."""
    brokenAt: str | None
    """When an operator broke the grant. Null if no operator did, or the record does not say."""
    brokenBy: str | None
    """The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters."""
    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none."""
    holders: list[FullHolder]
    """The holders, in the order of their grants. Empty if no caller holds the key."""
    used: int
    """The total weight of all holders."""
    limit: int | None
    """The limit that the last grant of the key named."""
    limitBy: str | None
    """The holder whose grant named that limit. Null if the record does not say."""
    previous: PreviousHolder | None
    """The holder before."""
    hasRecord: bool
    waiting: int
    """The number of tasks and calls in line, counted up to 100, or with `waiters` up to `limit`."""


class Key(_Key, total=False):
    """A key with all its holders and its line.

    From `state` to `data`, the fields are those of one holder, as in `KeySummary`.
    """

    supersededBy: str
    """The holder of the newer request that has asked this holder to stop. The grant is then `ending`."""
    cap: Cap
    waiters: list[Waiter]
    """The first waiters in line, in the order of their arrival. Present if the request has `waiters`."""


class KeyPage(TypedDict):
    """A page of keys. A page may be empty and still have a cursor."""

    leases: list[ListedKey]
    """The keys, in the order of `sort`. Without `sort`, in no particular order."""
    nextCursor: str | None
    """To read the next page, send it as `cursor`. Null on the last page."""


class _KeySummary(TypedDict):
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    state: KeySummaryState
    """Whether a caller holds the key."""
    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    expiresAt: str | None
    """When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key."""
    acquiredAt: str | None
    """When the lease or the permit was granted. Null if the record does not say."""
    remainingMs: int | None
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""
    ttlSeconds: float | None
    """How long the grant lasts from each heartbeat, in seconds. Null if the record does not say."""
    execution: str | None
    """The ARN of the execution that holds the grant, or held it until the execution ended."""
    bound: bool
    """True if the grant lasts until its execution ends, without heartbeats."""
    inGrace: bool
    ending: bool
    """True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop."""
    brokenAt: str | None
    """When an operator broke the grant. Null if no operator did, or the record does not say."""
    brokenBy: str | None
    """The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters."""
    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none."""


class KeySummary(_KeySummary, total=False):
    """A key with one of its holders: the exclusive holder, or the shared holder whose grant expires first."""

    supersededBy: str
    """The holder of the newer request that has asked this holder to stop. The grant is then `ending`."""


class _Ledger(TypedDict):
    alias: str
    """The alias, as `name:branch`."""
    name: str
    """The part of the alias before the colon."""
    branch: str
    """The part of the alias after the colon."""
    retracted: bool
    """True if the alias is retracted. A retracted alias stays visible."""
    index: Pointer
    status: Status
    updatedAt: str
    """When an item of the record was last written."""
    kind: Literal["ledger"]
    """The kind of the alias."""
    commit: Pointer
    config: LedgerConfig


class Ledger(_Ledger, total=False):
    """The record of a ledger."""

    missing: list[LedgerMissing]
    """Items of the record that are missing. The next write to such an item restores it."""
    oversized: Literal[True]


class LedgerConfig(TypedDict):
    """The config of a ledger."""

    v: int
    """The version, which rises with each change."""
    payload: LedgerConfigPayload | None
    """The content of the config of a ledger."""


class LedgerConfigPayload(TypedDict, total=False):
    """The content of the config of a ledger."""

    defaultContextAddress: str
    """Where the default context of the ledger is stored."""
    extra: dict[str, Any]
    """Whatever the writer added."""


class _ListedKey(TypedDict):
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    state: KeySummaryState
    """Whether a caller holds the key."""
    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    expiresAt: str | None
    """When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key."""
    acquiredAt: str | None
    """When the lease or the permit was granted. Null if the record does not say."""
    remainingMs: int | None
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""
    ttlSeconds: float | None
    """How long the grant lasts from each heartbeat, in seconds. Null if the record does not say."""
    execution: str | None
    """The ARN of the execution that holds the grant, or held it until the execution ended."""
    bound: bool
    """True if the grant lasts until its execution ends, without heartbeats."""
    inGrace: bool
    ending: bool
    """True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop."""
    brokenAt: str | None
    """When an operator broke the grant. Null if no operator did, or the record does not say."""
    brokenBy: str | None
    """The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters."""
    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none."""
    used: int
    """The total weight of all holders."""
    limit: int | None
    """The limit that the last grant of the key named."""
    holders: int
    """The number of holders."""
    waiting: int
    """How many tasks and calls are in line at most: the record still counts some that have left."""


class ListedKey(_ListedKey, total=False):
    """A key in a list, with the holder that has had it for the longest time.

    With `sort` `expiry`, with the holder whose grant expires first.
    """

    supersededBy: str
    """The holder of the newer request that has asked this holder to stop. The grant is then `ending`."""
    cap: Cap


class MayCall(TypedDict):
    """A call of the API, and whether the caller may send it."""

    operation: str
    """The `operationId` of the call."""
    route: str
    """The method and the path of the call."""
    allowed: bool | None
    """Whether the caller may send the call. Null if IAM decides."""
    permission: str | None
    """The permission or the scopes that the call needs. Null if every caller may send it."""


class Moved(TypedDict):
    """The waiter is now the next one."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    ticket: str
    """The id of a waiter in the line. Tickets sort by arrival."""
    moved: Literal[True]
    """The next grant of the key is for this waiter, unless it leaves."""
    before: str | None
    """The ticket of the waiter that an earlier call had moved, and that is no longer next. Null if there was none."""


class NamedRate(TypedDict):
    """A rate of a key, as a caller or an operator named it."""

    name: str
    """The name of the rate."""
    limit: int
    """How many units may start in each period."""
    per: str
    """The period, such as `1m`."""


class NotCancelled(TypedDict):
    """The task or the call was not in line."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    ticket: str
    """The id of a waiter in the line. Tickets sort by arrival."""
    cancelled: Literal[False]
    """The waiter was not in line."""
    reason: Literal["granted", "gone", "unknown"]
    """Why not."""


class NotMoved(TypedDict):
    """The waiter was not in line."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    ticket: str
    """The id of a waiter in the line. Tickets sort by arrival."""
    moved: Literal[False]
    reason: Literal["granted", "gone", "unknown"]
    """Why not."""


class NotReleased(TypedDict):
    """The caller did not hold the lease or the permit, which is not an error."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    released: Literal[False]
    """The caller did not hold it."""
    reason: NotReleasedReason
    """Why not."""


class NotWithdrawn(TypedDict):
    """There was nothing to withdraw."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    requestId: str
    """The id of one acquisition."""
    cancelled: Literal[False]
    reason: Literal["unknown"]
    """No call of the request waits, and the request does not have a grant."""


class OnceCompleted(TypedDict):
    """The result is stored."""

    key: str
    """The key of the call."""
    completed: Literal[True]
    """The caller has stored its result."""
    repeated: bool
    """True if an earlier try had already stored a result, which stays."""
    slot: str
    """The slot that is done."""
    doneAt: str
    """When the result was stored."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""


class OnceDone(TypedDict):
    """The slot is done."""

    outcome: Literal["done"]
    """A caller has completed the slot."""
    key: str
    """The key of the call."""
    slot: str
    """The slot of the call."""
    result: Any
    """The stored result."""
    doneBy: str | None
    """The holder that completed the slot. Null if the record does not say."""
    doneAt: str
    """When the slot was completed."""
    fence: int | None
    """The fence of the grant that completed the slot. Null if the record does not say."""


class OnceForgotten(TypedDict):
    """The slot is forgotten."""

    key: str
    """The key of the call."""
    forgotten: Literal[True]
    """The key remembers no slot now."""
    fence: int
    """The fence of the request."""
    slot: str | None
    """The slot that was forgotten. Null if the key did not remember a slot, for example after a retry."""


class _OnceKey(TypedDict):
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    state: KeySummaryState
    """Whether a caller holds the key."""
    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    expiresAt: str | None
    """When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key."""
    acquiredAt: str | None
    """When the lease or the permit was granted. Null if the record does not say."""
    remainingMs: int | None
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""
    ttlSeconds: float | None
    """How long the grant lasts from each heartbeat, in seconds. Null if the record does not say."""
    execution: str | None
    """The ARN of the execution that holds the grant, or held it until the execution ended."""
    ending: bool
    """True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop."""
    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none."""
    kind: Literal["once"]
    """The kind of the key."""
    slot: str | None
    """The slot of the last grant. Null if the key has no record."""
    done: OnceLastSlot | None
    """The last slot that was done."""


class OnceKey(_OnceKey, total=False):
    """A key of `once`: who works or has worked last, and which slot is done."""

    result: Any
    """The stored result, in the read of one key. Null if no slot is done."""
    cap: Cap


class OnceLastSlot(TypedDict):
    """The last slot that was done."""

    slot: str
    """The slot."""
    by: str | None
    """The holder that completed the slot. Null if the record does not say."""
    at: str
    """When the slot was completed."""
    fence: int | None
    """The fence of the grant that completed the slot. Null if the record does not say."""
    keptUntil: str
    """Until when the result is kept."""


class OnceNotCompleted(TypedDict):
    """No result is stored."""

    key: str
    """The key of the call."""
    completed: Literal[False]
    """The caller no longer holds the grant."""
    reason: OnceNotCompletedReason
    """`released`: the grant was released, or the execution has ended."""


class OncePage(TypedDict):
    """A page of keys, without results. An empty page may have a cursor."""

    keys: list[OnceKey]
    """The keys, in no particular order."""
    nextCursor: str | None
    """To read the next page, send it as `cursor`. Null on the last page."""


class _OnceRun(TypedDict):
    outcome: Literal["run"]
    """No other caller works for the slot, and the slot is not done."""
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    holder: str
    """The name that the holder gives itself, for people who read the key. It proves nothing."""
    leaseId: str
    """The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it."""
    version: str
    """A UUID that changes with each heartbeat. It is a secret."""
    fence: int
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    acquiredAt: str
    """When the lease or the permit was granted."""
    expiresAt: str
    """When the lease or the permit expires, unless a heartbeat extends it."""
    remainingMs: int
    """How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says."""
    slot: str
    """The slot of the grant. For a retry, the slot of the first try."""
    waitedMs: int
    """How long the call waited, from its arrival to its answer, in milliseconds."""
    repeated: bool
    """True if the request already had this grant, because the call is a retry or a response was lost."""
    previous: PreviousHolder | None
    """The holder before."""


class OnceRun(_OnceRun, total=False):
    """The caller is to work for the slot, and then call `complete`."""

    data: Any
    """JSON that the holder shows to every reader of the key, such as a link to its log."""


class OnceSuperseded(TypedDict):
    """A later slot is done, so this one is no longer wanted. Results of earlier slots are not kept."""

    outcome: Literal["superseded"]
    """A caller has completed a later slot."""
    key: str
    """The key of the call."""
    slot: str
    """The slot of the call."""
    doneSlot: str
    """The later slot."""
    doneBy: str | None
    """The holder that completed the slot. Null if the record does not say."""
    doneAt: str
    """When the slot was completed."""
    fence: int | None
    """The fence of the grant that completed the slot. Null if the record does not say."""


class Parked(TypedDict):
    """A task that waits in line, or already has its grant."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    holder: str
    """The name that the holder gives itself, for people who read the key. It proves nothing."""
    ticket: str
    """The id of a waiter in the line. Tickets sort by arrival."""
    parked: bool
    """True if the task waits in line. False if it was notified at once, or another call is notifying it."""


class PathInFlight(TypedDict):
    """A commit that has begun and has not replaced the object. Its writer may have exited."""

    path: str
    """The key of the object in the bucket."""
    expectedEtag: str | None
    """The ETag that the commit replaces, with its quotes. Null if the commit creates the object."""
    generation: int
    """How often a commit has taken over the record of another one for the same precondition."""
    timeoutMs: int | None
    """How long the writer may take, in milliseconds."""
    commitId: str | None
    """The id of one commit. Null for a third-party client."""
    writtenAt: str | None
    """When the commit began. Null for a third-party client."""
    remainingMs: int | None
    """How much of its time the writer had left when the service answered, in milliseconds."""


class Pointer(TypedDict):
    """The head of the commits or of the index of an alias."""

    address: str | None
    """Where the commit or the index is stored. Null before the first publish."""
    t: int
    """The watermark: a whole number that only a repair lowers."""


class _PreviousHolder(TypedDict):
    holder: str
    """The name that the holder gives itself, for people who read the key. It proves nothing."""
    fence: int
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    ended: PreviousHolderEnded
    """How that grant ended."""
    at: str
    """When that grant ended."""


class PreviousHolder(_PreviousHolder, total=False):
    """The holder before.

    If its grant has `expired`, or was `broken` or `superseded`, its work may be half done. For a shared grant, it is a
    holder whose room the grant takes. Null if there was no such holder, if it was a third-party client, or if the
    response to the first try was lost.
    """

    by: str
    """The operator that broke the grant: an IAM ARN or the subject of a JWT, up to 256 characters."""


class Published(TypedDict):
    """The outcome of a publish."""

    alias: str
    """The alias, as `name:branch`."""
    outcome: Literal["updated", "stale"]
    """`stale`: the alias has a newer value, and nothing was written."""
    created: bool
    """True if this call created the alias."""
    repeated: bool
    """True if an earlier try of this call took effect."""
    current: Ledger | GraphSource | Pointer | Status | LedgerConfig | Retracted


class _PurgeExpected(TypedDict):
    kind: Literal["ledger", "graph_source"]
    """The kind of the alias."""
    index: CompareAndSetRefExpected
    """The index ref."""
    status: SeenRecordStatus
    """The status."""
    config: SeenRecordConfig
    """The config."""


class PurgeExpected(_PurgeExpected, total=False):
    """The value that the caller saw, which the alias must still have.

    Null if the items of the alias do not form a record.
    """

    commit: CompareAndSetRefExpected
    """The commit ref of a ledger."""


class PushConfigNext(TypedDict):
    """The config to set. The version must rise."""

    v: int
    """The version."""
    payload: PushConfigNextPayload | None
    """The content. Null empties the config."""


class PushConfigNextPayload(TypedDict, total=False):
    """The content. Null empties the config."""

    defaultContextAddress: str
    """Where the default context of the ledger is stored."""
    extra: dict[str, Any]
    """Any JSON object up to 4 KiB."""


class _PushStatusNext(TypedDict):
    state: str
    """The state, in one word."""
    v: int
    """The version."""


class PushStatusNext(_PushStatusNext, total=False):
    """The status to set. The version must rise."""

    extra: dict[str, Any]
    """Any JSON object up to 4 KiB."""


class RateForgotten(TypedDict):
    """The reservations of the key are forgotten."""

    key: str
    """The key of the call."""
    forgotten: Literal[True]
    """The next caller starts at once."""


class _RateKey(TypedDict):
    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    kind: Literal["rate"]
    """The kind of the key."""
    paidUntil: str | None
    """Until when the rates are used up. Null if no caller has reserved."""
    rates: list[NamedRate]
    """The rates that the last caller named."""
    ratesBefore: list[NamedRate]
    """The rates that the caller before named."""
    by: str | None
    """The holder of the last reservation. Null if there is none."""
    at: str | None
    """When the last caller reserved. Null if no caller has."""
    open: int
    """How many reservations are open, which means not settled yet."""


class RateKey(_RateKey, total=False):
    """The rates of a key."""

    cap: Cap


class RatePage(TypedDict):
    """A page of keys. An empty page may have a cursor."""

    keys: list[RateKey]
    """The keys, in no particular order."""
    nextCursor: str | None
    """To read the next page, send it as `cursor`. Null on the last page."""


class RecordPage(TypedDict):
    """A page of records. A page may be empty and still have a cursor."""

    records: list[NameserviceRecord]
    """The records, by kind and then by alias."""
    nextCursor: str | None
    """To read the next page, send it as `cursor`. Null on the last page."""


class Released(TypedDict):
    """The grant has ended, and the next waiter receives the key."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    released: Literal[True]
    """The caller held it."""


class Repaired(TypedDict):
    """The outcome of a repair."""

    alias: str
    """The alias, as `name:branch`."""
    op: RepairedOp
    """The operation."""
    repeated: bool
    """True if an earlier try of this call took effect."""
    current: Pointer | Status | LedgerConfig | Unretracted | None
    """What the operation changes, as it is now. Null after a purge."""


class Report(TypedDict):
    """A report, complete or stopped."""

    reportId: str
    """The id of the report."""
    startedAt: str
    """When the report began. A report may take several runs."""
    finishedAt: str | None
    """When the report was complete. Null until then."""
    complete: bool
    """True if all tables and the bucket were scanned, and, in a namespace, all rows of the report were counted."""
    scanned: int
    """The number of rows and objects that the report has read."""
    readUnits: float
    """The read units that DynamoDB charged."""
    heldByNamespace: list[HeldLeases]
    """The namespaces with the most held leases and permits, up to 100."""
    expired: ExpiredTallies
    neverDeletable: int
    """The number of expired rows that DynamoDB's TTL can never delete."""
    location: str
    """Where the rows are in S3, as newline-delimited JSON."""
    stoppedBy: Literal["time", "Throttled"] | None
    """Why the report is not complete."""
    announced: bool
    """True if the event of each complete report has reached the event bus."""


class ReportPage(TypedDict):
    """A report with a page of its rows. A page of one kind may be empty and still have a cursor."""

    reportId: str
    """The id of the report."""
    startedAt: str
    """When the report began. A report may take several runs."""
    finishedAt: str | None
    """When the report was complete. Null until then."""
    complete: bool
    """True if all tables and the bucket were scanned, and, in a namespace, all rows of the report were counted."""
    scanned: int
    """The number of rows and objects that the report has read."""
    readUnits: float
    """The read units that DynamoDB charged."""
    heldByNamespace: list[HeldLeases]
    """The namespaces with the most held leases and permits, up to 100."""
    expired: ExpiredTallies
    neverDeletable: int
    """The number of expired rows that DynamoDB's TTL can never delete."""
    location: str
    """Where the rows are in S3, as newline-delimited JSON."""
    rows: list[ExpiredRecord]
    """The records, in the order in which the report found them."""
    nextCursor: str | None
    """To read the next page, send it as `cursor`. Null on the last page."""


class ReservationCancelled(TypedDict):
    """Whether the reservation was cancelled."""

    key: str
    """The key of the call."""
    cancelled: bool


class _ReserveRate(TypedDict):
    limit: int
    """How many units may start in each period."""
    per: str
    """The period: a number and `s`, `m`, `h` or `d`, at most 31 days."""


class ReserveRate(_ReserveRate, total=False):
    """One to four rates with different names.

    The start respects each of them. A rate is `limit` units in each period `per`. `units` is what this call takes, 1 by
    default. `burst` is how many units may start at once after the key was idle: by default only `units`, so that starts
    are spaced evenly. `name` is `requests` by default.
    """

    name: str
    """The name of the rate."""
    units: int
    """What this call takes, at most ten times the limit."""
    burst: int
    """How many units may start at once after the key was idle. The default and the least is `units`."""


class _Reserved(TypedDict):
    key: str
    """The key of the call."""
    reservation: str
    """The id of the reservation, for `settle`."""
    startAt: str
    """The earliest start of the work."""
    waitMs: int
    """How long to sleep from the answer to the start, in milliseconds."""
    sleepSeconds: int
    """`waitMs` in whole seconds, rounded up, for `SecondsPath` of a `Wait` state."""
    boundBy: str
    """The name of the tightest rate."""
    repeated: bool
    """True if an earlier try of the request had already reserved the start."""


class Reserved(_Reserved, total=False):
    """When the work may start."""

    rateChanged: ReservedRateChanged
    """Present if the caller before named other rates. The faster rate then counts."""


ReservedRateChanged = TypedDict("ReservedRateChanged", {"from": list[NamedRate], "to": list[NamedRate]})
"""Present if the caller before named other rates. The faster rate then counts."""


class Retracted(TypedDict):
    """The ledger or the graph source is retracted."""

    retracted: Literal[True]
    """The alias is retracted."""


class Retraction(TypedDict):
    """Whether a ledger or a graph source is retracted."""

    retracted: bool
    """True if the alias is retracted."""


class _SeenRecord(TypedDict):
    kind: Literal["ledger", "graph_source"]
    """The kind of the alias."""
    retracted: bool
    """True if the alias is retracted. Only a retracted alias can be purged."""
    index: Pointer
    status: SeenRecordStatus
    """The status."""
    config: SeenRecordConfig
    """The config."""


class SeenRecord(_SeenRecord, total=False):
    """The part of a record that a purge compares."""

    commit: Pointer


class SeenRecordConfig(TypedDict):
    """The config."""

    v: int
    """The version."""


class SeenRecordStatus(TypedDict):
    """The status."""

    state: str
    """The state, such as `ready`."""
    v: int
    """The version."""


class Settled(TypedDict):
    """Whether the reservation was open."""

    key: str
    """The key of the call."""
    settled: bool
    """False if the reservation was already settled or cancelled, or has kept its estimate after 15 minutes."""


class Spared(TypedDict):
    """The records that were spared."""

    count: int
    """The number of records."""
    by: SparedBy
    """The number of records, by the reason for sparing them."""
    records: list[CleanedRecord]
    """The first 100 records."""


class SparedBy(TypedDict, total=False):
    """The number of records, by the reason for sparing them."""

    tooYoung: int
    ageUnknown: int
    neverDeletable: int
    leftToQueue: int
    partOfRecord: int
    fenceAhead: int
    unrecognisable: int
    changed: int
    gone: int


class Status(TypedDict):
    """The status of a ledger or a graph source."""

    state: str
    """The state, such as `ready`."""
    v: int
    """The version, which rises with each change."""
    extra: dict[str, Any]
    """Whatever the writer added."""


class StoredObject(TypedDict):
    """The object at a path. All other fields are null if there is no object."""

    path: str
    """The key of the object in the bucket."""
    etag: str | None
    """The ETag, with its quotes."""
    versionId: str | None
    """The version of the object, if the bucket has versions."""
    size: int | None
    """The size in bytes."""
    contentType: str | None
    """The media type."""
    metadata: dict[str, str] | None
    """The metadata that callers put on the object."""
    commitId: str | None
    """The id of the commit that wrote the object. Null if a third-party client wrote it."""
    fence: Fence | None
    """The fence of an object: only commits with this key and a token at least as high replace the object."""
    inFlight: CommitInFlight | None
    """A commit that has begun and has not replaced the object. Its writer may have exited."""


class UnretractExpected(TypedDict):
    """The value that the caller saw, which the alias must still have."""

    kind: Literal["ledger", "graph_source"]
    """The kind of the alias."""


class Unretracted(TypedDict):
    """The ledger or the graph source is not retracted."""

    retracted: Literal[False]
    """The alias is not retracted."""


class Upload(TypedDict):
    """Where to send the bytes of an object, which a commit then names as its source."""

    uploadId: str
    """The id of the upload, for `source` of a commit."""
    url: str
    """The signed URL for the bytes."""
    method: Literal["PUT"]
    """The method of the upload."""
    headers: dict[str, str]
    """The headers to send with the upload. They are part of the signature."""
    expiresAt: str
    """When the URL expires. An upload that has begun by then still completes."""


class _Waiter(TypedDict):
    kind: Literal["task", "callback", "caller"]
    """A parked Step Functions task, the callback of a durable function, or a call of `acquire` that waits."""
    ticket: str
    """The id of a waiter in the line. Tickets sort by arrival."""
    holder: str
    """The name that the holder gives itself, for people who read the key. It proves nothing."""
    execution: str | None
    """The ARN of the execution that waits for the grant. Null if the request named none."""
    parkedAt: str
    """When the wait began. A call that keeps its position keeps this instant."""
    deadline: str
    """When the wait ends with `LeaseHeld`."""
    dueAt: str | None
    """For a caller that sleeps between two calls: when its next call must come. Null for every other waiter."""


class Waiter(_Waiter, total=False):
    """A task, a callback or a call in line."""

    movedBy: str | None
    """The operator that moved the waiter to the front: an IAM ARN or the subject of a JWT."""
    replace: Literal["waiting", "running"]
    """What the request replaces: older requests that wait, or also the holder."""


class Whoami(TypedDict):
    """The authenticated caller."""

    version: str
    """The version of the deployment."""
    principal: str | None
    """The ARN that IAM gives the caller, or the subject of its token. Null if it has neither."""
    authorizedBy: WhoamiAuthorizedBy
    namespaces: list[str] | None
    """The namespaces that the token of the caller names, or the namespace whose alias a task invokes."""
    calls: list[MayCall]
    """Every call of the API."""


class Withdrawn(TypedDict):
    """The request neither waits in line nor holds the key through a call that was in line."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    requestId: str
    """The id of one acquisition."""
    cancelled: Literal[True]
    """The request is withdrawn."""


NameserviceRecord: TypeAlias = Ledger | GraphSource
"""The record of an alias."""


class InvalidRequest(HoldfastError):
    """The request is not valid."""

    issues: list[Issue]
    """The faults, up to twenty."""


class Forbidden(HoldfastError):
    """The caller may not do this."""

    missing: str
    """The claim or the scope that the caller lacks."""


class NotFound(HoldfastError):
    """There is no such record."""

    key: str | None = None
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    alias: str | None = None
    """The alias, as `name:branch`."""
    kind: Literal["ledger", "graph_source"] | None = None
    """The kind of the alias."""
    source: str | None = None
    """The upload that the commit names."""
    report_id: str | None = None
    """The id of the report. Null if the caller named none."""


class LeaseHeld(HoldfastError):
    """The key is not available."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    holder: str | None
    """The name that the holder gives itself, for people who read the key."""
    fence: int | None
    """The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder."""
    expires_at: str | None
    """When the lease or the permit expires, unless a heartbeat extends it."""
    waiting: int | None = None
    """After a wait in line: the number of other waiters, counted up to 100."""
    place: int | None = None
    """After a wait in line: the position of the call, from 1. An estimate if it is above 20."""
    come_back_ms: int | None = None
    """With a `ticket`: how long a caller that sends `sleepMs` sleeps before it calls again, in milliseconds."""
    kept_ms: int | None = None
    """With a `ticket`: how long the position is kept after the answer, in milliseconds."""
    used: int
    """The total weight of all holders."""
    limit: int | None
    """The limit that this call names, or else the limit that the last grant named. Null if neither names one."""
    holders: list[Holder]
    """Up to ten holders: first those whose grants end next, then those that have expired."""
    cap: Cap | None = None


class Superseded(HoldfastError):
    """A newer request has replaced this one."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    by: str
    """The holder of the newer request."""


class CommitInProgress(HoldfastError):
    """Another writer is committing to the path."""

    path: str
    """The key of the object in the bucket."""
    generation: int
    """How often a commit has taken over the record of another one for the same precondition."""


class Conflict(HoldfastError):
    """The record is not in the expected state."""

    key: str | None = None
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    alias: str | None = None
    """The alias, as `name:branch`."""
    field: Literal["inputHash", "per"] | None = None
    actual: KeySummary | Pointer | Status | LedgerConfig | SeenRecord | Retraction | RateKey | None
    """What is there now: the key with a holder, or the value of the alias. Null if there is nothing."""


class AlreadyExists(HoldfastError):
    """The alias exists already."""

    alias: str
    """The alias, as `name:branch`."""
    kind: Literal["ledger", "graph_source"] | None = None
    """The kind of the alias."""


class LeaseLost(HoldfastError):
    """The lease is no longer yours."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    reason: LossReason
    """How the caller lost it."""
    holder: str | None = None
    """The current holder. Null if no caller holds the key, or the record does not say."""


class PreconditionFailed(HoldfastError):
    """The object is not in the expected state."""

    path: str
    """The key of the object in the bucket."""
    etag: str | None
    """The ETag of the object at the path. Null if there is no object."""
    fence: Fence | None = None
    """The fence of an object: only commits with this key and a token at least as high replace the object."""


class FenceRejected(HoldfastError):
    """The object belongs to a newer holder of the fence."""

    path: str
    """The key of the object in the bucket."""
    token: int | None
    """The token of this commit. Null if the commit has no fence."""
    highest: int
    """The highest token that has written the object."""


class PayloadTooLarge(HoldfastError):
    """The body is too large."""

    limit_bytes: int | None = None
    """The limit in bytes, if the request exceeds it."""
    limit_values: int | None = None
    """The limit of values, if the request exceeds it."""


class RateExceeded(HoldfastError):
    """The rate is used up for longer than the call may wait."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    bound_by: str
    """The name of the tightest rate."""
    cap: Cap | None = None


class QueueFull(HoldfastError):
    """Too many tasks and callers wait."""

    key: str
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    quota: Literal["maxWaitersPerKey", "maxWaitersPerNamespace", "openReservations"]
    """The parameter of the deployment that is reached."""
    limit: int
    """The value of that parameter. The limit of open reservations is 200."""


class Throttled(HoldfastError):
    """The store is throttling requests."""


class Unavailable(HoldfastError):
    """A dependency is unavailable."""

    key: str | None = None
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""


class OutcomeUnknown(HoldfastError):
    """The outcome of the write is unknown."""

    key: str | None = None
    """The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`."""
    alias: str | None = None
    """The alias, as `name:branch`."""
    path: str | None = None
    """The key of the object in the bucket."""
    actual: KeySummary | Pointer | Status | LedgerConfig | SeenRecord | Retraction | RateKey | None = None
    """What is there now: the key with a holder, or the value of the alias. Null if there is nothing."""


class Refused(HoldfastError):
    """The gateway refused the caller (401 or 403), or the call itself."""


class Unreachable(HoldfastError):
    """The service did not answer: the connection broke, the time ran out, or a gateway failed.

    A write may still have taken effect, unless `sent` is false.
    """

    sent: bool | None = None


ERRORS: dict[str, type[HoldfastError]] = {
    "AlreadyExists": AlreadyExists,
    "CommitInProgress": CommitInProgress,
    "Conflict": Conflict,
    "FenceRejected": FenceRejected,
    "Forbidden": Forbidden,
    "InvalidRequest": InvalidRequest,
    "LeaseHeld": LeaseHeld,
    "LeaseLost": LeaseLost,
    "NotFound": NotFound,
    "OutcomeUnknown": OutcomeUnknown,
    "PayloadTooLarge": PayloadTooLarge,
    "PreconditionFailed": PreconditionFailed,
    "QueueFull": QueueFull,
    "RateExceeded": RateExceeded,
    "Refused": Refused,
    "Superseded": Superseded,
    "Throttled": Throttled,
    "Unavailable": Unavailable,
    "Unreachable": Unreachable,
}

# The errors, which `holdfast` exports too.
__all__ = [
    "AlreadyExists",
    "CommitInProgress",
    "Conflict",
    "FenceRejected",
    "Forbidden",
    "InvalidRequest",
    "LeaseHeld",
    "LeaseLost",
    "NotFound",
    "OutcomeUnknown",
    "PayloadTooLarge",
    "PreconditionFailed",
    "QueueFull",
    "RateExceeded",
    "Refused",
    "Superseded",
    "Throttled",
    "Unavailable",
    "Unreachable",
]


class Calls(ABC):
    """The calls of the API. The client adds leases with heartbeats, and work under them."""

    @abstractmethod
    def call(self, operation: str, request: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        """Sends a call of the API, and repeats it for `timeout` seconds after transient failures."""

    def heartbeat(self, *, key: str, lease_id: str, ttl_seconds: int | None = None, timeout: float = 30.0) -> Grant:
        """Extend a lease or a permit.

        Extends the grant by its ttl, with the same fence. Call it well before the grant expires. A heartbeat also
        revives an expired grant, unless another grant has replaced it.
        """
        request = given(key=key, leaseId=lease_id, ttlSeconds=ttl_seconds)
        return cast("Grant", self.call("heartbeat", request, timeout=timeout))

    def release(self, *, key: str, lease_id: str, timeout: float = 30.0) -> Released | NotReleased:
        """Release a lease or a permit.

        Ends the grant, and gives the key to the next waiter. If the caller does not hold the grant, the call still
        succeeds, so a program can always release when it cleans up.
        """
        request = given(key=key, leaseId=lease_id)
        return cast("Released | NotReleased", self.call("release", request, timeout=timeout))

    def break_lease(
        self,
        *,
        key: str,
        fence: int,
        wait: bool | None = None,
        kind: Literal["once"] | None = None,
        timeout: float = 30.0,
    ) -> Broken:
        """Break a lease or a permit.

        For an operator, when a holder is stuck: ends the grant with this fence, at once or, with `wait`, at its release
        or its expiry. The next heartbeat of the holder and a retry of its acquire fail with `LeaseLost` (`broken`). If
        the holder works on regardless, only a store that checks the fence refuses its writes.
        """
        request = given(key=key, fence=fence, wait=wait, kind=kind)
        return cast("Broken", self.call("breakLease", request, timeout=timeout))

    @overload
    def read_leases(
        self,
        *,
        key: str,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        waiters: bool | None = None,
        timeout: float = 30.0,
    ) -> Key: ...

    @overload
    def read_leases(
        self,
        *,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> KeyPage: ...

    def read_leases(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        waiters: bool | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> Key | KeyPage:
        """Read a key, or list keys.

        With `key`, reads that key, its holders and its line. Without `key`, lists keys page by page. A page without
        `sort` costs 0.5 read units for each 4 KiB of records that it reads, and a page with `sort` reads the whole
        table. For the first few keys in an order, send `sort` and a small `limit`. To read all keys, leave out `sort`
        and sort the rows yourself.
        """
        request = given(
            key=key,
            prefix=prefix,
            holder=holder,
            state=state,
            sort=sort,
            limit=limit,
            waiters=waiters,
            cursor=cursor,
        )
        return cast("Key | KeyPage", self.call("readLeases", request, timeout=timeout))

    def leases(
        self,
        *,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> Iterator[ListedKey]:
        """Lists the keys that match, page by page."""
        request = given(prefix=prefix, holder=holder, state=state, sort=sort, limit=limit)
        return paged(lambda page: self.call("readLeases", page, timeout=timeout), request, "leases")

    def cancel_waiter(self, *, key: str, ticket: str, timeout: float = 30.0) -> Cancelled | NotCancelled:
        """Cancel a waiter.

        For an operator: takes the waiter with this ticket out of the line. Its task or call fails with `LeaseLost`
        (`cancelled`). A caller takes out its own request with `withdraw`.
        """
        request = given(key=key, ticket=ticket)
        return cast("Cancelled | NotCancelled", self.call("cancelWaiter", request, timeout=timeout))

    def cap(
        self,
        *,
        key: str,
        limit: int | Omitted | None = OMITTED,
        rates: list[CapRate] | Omitted | None = OMITTED,
        reason: str | None = None,
        for_seconds: int | None = None,
        kind: Literal["once"] | None = None,
        timeout: float = 30.0,
    ) -> Capped:
        """Cap or pause a key.

        For an operator: limits the total weight of the holders of a key, or the starts at its rates, whatever limits
        the callers name. A `limit` of 0 pauses the key. Current holders keep their grants, and the line keeps its
        order. Callers that the cap keeps out see its reason. To lift a part of the cap, send null: the line is then
        served.
        """
        request = given(key=key, reason=reason, forSeconds=for_seconds, kind=kind)
        request |= sent(limit=limit, rates=rates)
        return cast("Capped", self.call("capKey", request, timeout=timeout))

    def run_next(self, *, key: str, ticket: str, timeout: float = 30.0) -> Moved | NotMoved:
        """Move a waiter to the front.

        For an operator: moves the waiter with this ticket to the front, so that it receives the next grant. Current
        holders keep their grants. Only one waiter of a key can be moved at a time, and the last call counts. No other
        waiter is served while the moved one does not fit or sleeps.
        """
        request = given(key=key, ticket=ticket)
        return cast("Moved | NotMoved", self.call("runNext", request, timeout=timeout))

    def withdraw(
        self,
        *,
        key: str,
        request_id: str,
        holder: str,
        ticket: str | None = None,
        timeout: float = 30.0,
    ) -> Withdrawn | NotWithdrawn:
        """Withdraw a request.

        For a caller that stops waiting: takes its request out of the line, or ends its grant. The request id, the
        holder and the authenticated caller must be those of the acquisition. A call of the request that is still in
        line fails with `LeaseLost`. If the request had a grant, a retry also fails with `LeaseLost`: until the next
        grant of the key or, after a permit or a grant to a waiter, until eight more such grants have ended. A request
        that was withdrawn in line is not remembered, so a duplicate that arrives later may receive a grant: withdraw
        after the last try.
        """
        request = given(key=key, requestId=request_id, holder=holder, ticket=ticket)
        return cast("Withdrawn | NotWithdrawn", self.call("withdraw", request, timeout=timeout))

    def once_begin(
        self,
        *,
        key: str,
        holder: str,
        slot: str | None = None,
        per: str | None = None,
        zone: str | None = None,
        ttl_seconds: int | None = None,
        wait_seconds: int | None = None,
        request_id: str | None = None,
        keep_seconds: int | None = None,
        input_hash: str | None = None,
        data: Any = None,
        execution: str | None = None,
        timeout: float = 30.0,
    ) -> OnceRun | OnceDone | OnceSuperseded:
        """Begin a slot.

        Lets one caller at a time work for a slot of a key. When the slot is done, every caller receives the stored
        result instead. While you work, extend the grant with `heartbeat`. Then call `complete`, or `release` if the
        work has failed: the next caller then begins the same slot.
        """
        request = given(
            key=key,
            holder=holder,
            slot=slot,
            per=per,
            zone=zone,
            ttlSeconds=ttl_seconds,
            waitSeconds=wait_seconds,
            requestId=request_id,
            keepSeconds=keep_seconds,
            inputHash=input_hash,
            data=data,
            execution=execution,
        )
        return cast("OnceRun | OnceDone | OnceSuperseded", self.call("onceBegin", request, timeout=timeout))

    def once_complete(
        self,
        *,
        key: str,
        lease_id: str,
        result: Any = None,
        timeout: float = 30.0,
    ) -> OnceCompleted | OnceNotCompleted:
        """Complete a slot.

        Stores the result of the slot and ends the grant. If the caller no longer holds the grant, the result is not
        stored, and `completed` is false.
        """
        request = given(key=key, leaseId=lease_id, result=result)
        return cast("OnceCompleted | OnceNotCompleted", self.call("onceComplete", request, timeout=timeout))

    def forget(self, *, key: str, fence: int, timeout: float = 30.0) -> OnceForgotten:
        """Forget a slot.

        For an operator: forgets the slot that is done and its result, so that the next caller does the work again.
        """
        request = given(key=key, fence=fence)
        return cast("OnceForgotten", self.call("onceForget", request, timeout=timeout))

    @overload
    def read_once(
        self,
        *,
        key: str,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> OnceKey: ...

    @overload
    def read_once(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> OncePage: ...

    def read_once(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> OnceKey | OncePage:
        """Read a key of once, or list such keys.

        With `key`, reads who works for a slot of that key, which slot is done, and its result. Without `key`, lists
        keys page by page, without results. A page reads up to 1,000 records of the leases table.
        """
        request = given(key=key, prefix=prefix, limit=limit, cursor=cursor)
        return cast("OnceKey | OncePage", self.call("readOnce", request, timeout=timeout))

    def rate_reserve(
        self,
        *,
        key: str,
        holder: str,
        request_id: str | None = None,
        rates: list[ReserveRate],
        wait_seconds: int | None = None,
        settle: bool | None = None,
        timeout: float = 30.0,
    ) -> Reserved:
        """Reserve a start at a rate.

        Reserves a start for your work, so that no more units start in a period than the rates allow. The call answers
        at once: sleep until `startAt`, then begin. Starts are given in the order of the calls.
        """
        request = given(
            key=key,
            holder=holder,
            requestId=request_id,
            rates=rates,
            waitSeconds=wait_seconds,
            settle=settle,
        )
        return cast("Reserved", self.call("rateReserve", request, timeout=timeout))

    def rate_settle(
        self,
        *,
        key: str,
        reservation: str,
        units: dict[str, int] | None = None,
        cancel: Literal[True] | None = None,
        timeout: float = 30.0,
    ) -> Settled | ReservationCancelled:
        """Settle or cancel a reservation.

        Corrects the charge of a reservation to the units that the work really took, or cancels the reservation. A
        repeat changes nothing.
        """
        request = given(key=key, reservation=reservation, units=units, cancel=cancel)
        return cast("Settled | ReservationCancelled", self.call("rateSettle", request, timeout=timeout))

    def rate_forget(self, *, key: str, paid_until: str, timeout: float = 30.0) -> RateForgotten:
        """Forget the reservations of a key.

        For an operator: forgets all reservations of a key, so that the next caller starts at once. Callers that already
        have a start keep it, so more may start than the rates allow.
        """
        request = given(key=key, paidUntil=paid_until)
        return cast("RateForgotten", self.call("rateForget", request, timeout=timeout))

    @overload
    def read_rates(
        self,
        *,
        key: str,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> RateKey: ...

    @overload
    def read_rates(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> RatePage: ...

    def read_rates(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> RateKey | RatePage:
        """Read the rates of a key, or list such keys.

        With `key`, reads until when its rates are used up. Without `key`, lists keys page by page. A page reads up to
        1,000 records of the leases table.
        """
        request = given(key=key, prefix=prefix, limit=limit, cursor=cursor)
        return cast("RateKey | RatePage", self.call("readRates", request, timeout=timeout))

    def commit(
        self,
        *,
        path: str,
        if_none_match: Literal["*"] | None = None,
        if_match: str | None = None,
        body: str | None = None,
        encoding: Literal["utf8", "base64"] | None = None,
        source: str | None = None,
        source_etag: str | None = None,
        content_type: str | None = None,
        cache_control: str | None = None,
        content_disposition: str | None = None,
        content_encoding: str | None = None,
        metadata: dict[str, str] | None = None,
        commit_id: str | None = None,
        fence: CommitFence | None = None,
        wait_seconds: int | None = None,
        timeout: float = 30.0,
    ) -> Commit:
        """Commit an object.

        Creates an object, or replaces the object that has the expected ETag. If several callers create an object at the
        same path, or replace the same ETag, only one of them wins. A retry with the same `commitId` receives the
        outcome of the first try.
        """
        request = given(
            path=path,
            ifNoneMatch=if_none_match,
            ifMatch=if_match,
            body=body,
            encoding=encoding,
            source=source,
            sourceEtag=source_etag,
            contentType=content_type,
            cacheControl=cache_control,
            contentDisposition=content_disposition,
            contentEncoding=content_encoding,
            metadata=metadata,
            commitId=commit_id,
            fence=fence,
            waitSeconds=wait_seconds,
        )
        return cast("Commit", self.call("commit", request, timeout=timeout))

    def read_commit(self, *, path: str, timeout: float = 30.0) -> StoredObject:
        """Read an object and its commits.

        Reads the ETag, the metadata and the fence of an object, and whether a commit is under way.
        """
        request = given(path=path)
        return cast("StoredObject", self.call("readCommit", request, timeout=timeout))

    def stage_upload(
        self,
        *,
        content_type: str | None = None,
        size_bytes: int | None = None,
        timeout: float = 30.0,
    ) -> Upload:
        """Stage an upload.

        Returns a signed URL for the bytes of an object, such as one that is too large for `body`. A commit then names
        the `uploadId` as its `source`.
        """
        request = given(contentType=content_type, sizeBytes=size_bytes)
        return cast("Upload", self.call("stageUpload", request, timeout=timeout))

    def reset_fence(
        self,
        *,
        path: str,
        if_match: str,
        expected_fence: CommitFence,
        fence: CommitFence | None,
        commit_id: str | None = None,
        wait_seconds: int | None = None,
        timeout: float = 30.0,
    ) -> Commit:
        """Replace or lift a fence.

        For an administrator who has read the ETag and the fence of an object. The bytes stay, but the ETag changes.
        After a reset, the object must be committed to before its fence can be reset again.
        """
        request = given(
            path=path,
            ifMatch=if_match,
            expectedFence=expected_fence,
            commitId=commit_id,
            waitSeconds=wait_seconds,
        )
        request |= sent(fence=fence)
        return cast("Commit", self.call("resetFence", request, timeout=timeout))

    def read_in_flight(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> InFlightPage:
        """List commits in flight.

        Lists commits that have begun and have not replaced the object yet. The call scans the commit records, and reads
        the object of each recent one. With `commitProtocol=native` Holdfast does not write records, so the list shows
        only commits of third-party clients.
        """
        request = given(prefix=prefix, limit=limit, cursor=cursor)
        return cast("InFlightPage", self.call("readInFlight", request, timeout=timeout))

    def commits_in_flight(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> Iterator[PathInFlight]:
        """Lists the commits that are under way, page by page."""
        request = given(prefix=prefix, limit=limit)
        return paged(lambda page: self.call("readInFlight", page, timeout=timeout), request, "commits")

    @overload
    def publish(
        self,
        *,
        op: Literal["initLedger"],
        alias: str,
        request_id: str | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["publishCommit"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["publishIndex"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        allow_equal: bool | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["retract"],
        alias: str,
        request_id: str | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["compareAndSetRef"],
        alias: str,
        request_id: str | None = None,
        ref: Literal["commit", "index"],
        expected: CompareAndSetRefExpected | None,
        next: CompareAndSetRefNext,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["fastForwardCommit"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        max_retries: int | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["pushStatus"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordStatus,
        next: PushStatusNext,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["pushConfig"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordConfig,
        next: PushConfigNext,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["publishGraphSource"],
        alias: str,
        request_id: str | None = None,
        source_type: str,
        config: Any,
        dependencies: list[str],
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["publishGraphSourceIndex"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    def publish(
        self,
        *,
        op: Literal["retractGraphSource"],
        alias: str,
        request_id: str | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    def publish(
        self,
        *,
        op: str,
        alias: str,
        request_id: str | None = None,
        address: str | None = None,
        t: int | None = None,
        allow_equal: bool | None = None,
        ref: Literal["commit", "index"] | None = None,
        expected: Any = OMITTED,
        next: Any = None,
        max_retries: int | None = None,
        source_type: str | None = None,
        config: Any = OMITTED,
        dependencies: list[str] | None = None,
        timeout: float = 30.0,
    ) -> Published:
        """Publish.

        Creates an alias, or changes what it points to: `op` says how. A publish that arrives late is `stale`, and
        changes nothing.
        """
        request = given(
            op=op,
            alias=alias,
            requestId=request_id,
            address=address,
            t=t,
            allowEqual=allow_equal,
            ref=ref,
            next=next,
            maxRetries=max_retries,
            sourceType=source_type,
            dependencies=dependencies,
        )
        request |= sent(expected=expected, config=config)
        return cast("Published", self.call("publish", request, timeout=timeout))

    @overload
    def repair_names(
        self,
        *,
        op: Literal["resetRef"],
        alias: str,
        request_id: str | None = None,
        ref: Literal["commit", "index"],
        expected: CompareAndSetRefExpected,
        next: CompareAndSetRefExpected,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    def repair_names(
        self,
        *,
        op: Literal["resetStatus"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordStatus,
        next: PushStatusNext,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    def repair_names(
        self,
        *,
        op: Literal["resetConfig"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordConfig,
        next: PushConfigNext,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    def repair_names(
        self,
        *,
        op: Literal["unretract"],
        alias: str,
        request_id: str | None = None,
        expected: UnretractExpected,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    def repair_names(
        self,
        *,
        op: Literal["purge"],
        alias: str,
        request_id: str | None = None,
        expected: PurgeExpected | None,
        timeout: float = 30.0,
    ) -> Repaired: ...

    def repair_names(
        self,
        *,
        op: str,
        alias: str,
        request_id: str | None = None,
        ref: Literal["commit", "index"] | None = None,
        expected: Any,
        next: Any = None,
        timeout: float = 30.0,
    ) -> Repaired:
        """Repair an alias.

        For an administrator: sets counters and flags back, or removes an alias. Each operation takes effect only if the
        alias still is as the caller saw it.
        """
        request = given(op=op, alias=alias, requestId=request_id, ref=ref, next=next)
        request |= sent(expected=expected)
        return cast("Repaired", self.call("repairNames", request, timeout=timeout))

    @overload
    def read_names(
        self,
        *,
        alias: str,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> NameserviceRecord: ...

    @overload
    def read_names(
        self,
        *,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> RecordPage: ...

    def read_names(
        self,
        *,
        alias: str | None = None,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> NameserviceRecord | RecordPage:
        """Read an alias, or list aliases.

        With `alias`, reads the record of that alias. Without `alias`, lists records page by page.
        """
        request = given(alias=alias, kind=kind, prefix=prefix, limit=limit, cursor=cursor)
        return cast("NameserviceRecord | RecordPage", self.call("readNames", request, timeout=timeout))

    def names(
        self,
        *,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> Iterator[NameserviceRecord]:
        """Lists the records of the nameservice that match, page by page."""
        request = given(kind=kind, prefix=prefix, limit=limit)
        return paged(lambda page: self.call("readNames", page, timeout=timeout), request, "records")

    def report(self, *, timeout: float = 30.0) -> Report:
        """Report what has expired.

        Scans the tables and the bucket for expired records, and writes a report. The records stay as they are. The
        schedule makes the same call.
        """
        request = given()
        return cast("Report", self.call("report", request, timeout=timeout))

    def read_expired(
        self,
        *,
        report_id: str | None = None,
        kind: ExpiredRecordKind | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> ReportPage:
        """Read a report. Reads the last complete report, or the report with the given id, page by page."""
        request = given(reportId=report_id, kind=kind, limit=limit, cursor=cursor)
        return cast("ReportPage", self.call("readExpired", request, timeout=timeout))

    def expired(
        self,
        *,
        report_id: str | None = None,
        kind: ExpiredRecordKind | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> Iterator[ExpiredRecord]:
        """Lists the rows of a report that match, page by page."""
        request = given(reportId=report_id, kind=kind, limit=limit)
        return paged(lambda page: self.call("readExpired", page, timeout=timeout), request, "rows")

    def clean(
        self,
        *,
        report_id: str | None = None,
        kinds: list[ExpiredRecordKind] | None = None,
        older_than_seconds: int | None = None,
        dry_run: bool | None = None,
        never_deletable: bool | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> CleanUp:
        """Delete expired records.

        Deletes reported records that have not changed since the report. By default the call only says what it would
        delete.
        """
        request = given(
            reportId=report_id,
            kinds=kinds,
            olderThanSeconds=older_than_seconds,
            dryRun=dry_run,
            neverDeletable=never_deletable,
            cursor=cursor,
        )
        return cast("CleanUp", self.call("clean", request, timeout=timeout))

    def read_contract(self, *, timeout: float = 30.0) -> dict[str, Any]:
        """Read the OpenAPI document.

        Returns the API of the deployed version as an OpenAPI 3.1 document. The answer may be cached.
        """
        request = given()
        return cast("dict[str, Any]", self.call("readContract", request, timeout=timeout))

    def read_health(self, *, timeout: float = 30.0) -> Health:
        """Check the health.

        Shows that the gateway, the authorizer and a function answer. The call does not read the tables or the bucket:
        to check those, acquire and release a lease. The caller needs a signature or a token, as on every route.
        """
        request = given()
        return cast("Health", self.call("readHealth", request, timeout=timeout))

    def whoami(self, *, timeout: float = 30.0) -> Whoami:
        """Read who the caller is, and what it may call.

        Returns the name of the authenticated caller, the version of the deployment, and for each call the permission
        that it needs and whether the caller has it. With IAM, `allowed` is null, because the service does not read IAM
        policies.
        """
        request = given()
        return cast("Whoami", self.call("whoami", request, timeout=timeout))


class AsyncCalls(ABC):
    """The calls of the API, for asyncio. The client adds leases with heartbeats, and work under them."""

    @abstractmethod
    async def call(self, operation: str, request: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        """Sends a call of the API, and repeats it for `timeout` seconds after transient failures."""

    async def heartbeat(
        self,
        *,
        key: str,
        lease_id: str,
        ttl_seconds: int | None = None,
        timeout: float = 30.0,
    ) -> Grant:
        """Extend a lease or a permit.

        Extends the grant by its ttl, with the same fence. Call it well before the grant expires. A heartbeat also
        revives an expired grant, unless another grant has replaced it.
        """
        request = given(key=key, leaseId=lease_id, ttlSeconds=ttl_seconds)
        return cast("Grant", await self.call("heartbeat", request, timeout=timeout))

    async def release(self, *, key: str, lease_id: str, timeout: float = 30.0) -> Released | NotReleased:
        """Release a lease or a permit.

        Ends the grant, and gives the key to the next waiter. If the caller does not hold the grant, the call still
        succeeds, so a program can always release when it cleans up.
        """
        request = given(key=key, leaseId=lease_id)
        return cast("Released | NotReleased", await self.call("release", request, timeout=timeout))

    async def break_lease(
        self,
        *,
        key: str,
        fence: int,
        wait: bool | None = None,
        kind: Literal["once"] | None = None,
        timeout: float = 30.0,
    ) -> Broken:
        """Break a lease or a permit.

        For an operator, when a holder is stuck: ends the grant with this fence, at once or, with `wait`, at its release
        or its expiry. The next heartbeat of the holder and a retry of its acquire fail with `LeaseLost` (`broken`). If
        the holder works on regardless, only a store that checks the fence refuses its writes.
        """
        request = given(key=key, fence=fence, wait=wait, kind=kind)
        return cast("Broken", await self.call("breakLease", request, timeout=timeout))

    @overload
    async def read_leases(
        self,
        *,
        key: str,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        waiters: bool | None = None,
        timeout: float = 30.0,
    ) -> Key: ...

    @overload
    async def read_leases(
        self,
        *,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> KeyPage: ...

    async def read_leases(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        waiters: bool | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> Key | KeyPage:
        """Read a key, or list keys.

        With `key`, reads that key, its holders and its line. Without `key`, lists keys page by page. A page without
        `sort` costs 0.5 read units for each 4 KiB of records that it reads, and a page with `sort` reads the whole
        table. For the first few keys in an order, send `sort` and a small `limit`. To read all keys, leave out `sort`
        and sort the rows yourself.
        """
        request = given(
            key=key,
            prefix=prefix,
            holder=holder,
            state=state,
            sort=sort,
            limit=limit,
            waiters=waiters,
            cursor=cursor,
        )
        return cast("Key | KeyPage", await self.call("readLeases", request, timeout=timeout))

    def leases(
        self,
        *,
        prefix: str | None = None,
        holder: str | None = None,
        state: State | None = None,
        sort: Sort | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[ListedKey]:
        """Lists the keys that match, page by page."""
        request = given(prefix=prefix, holder=holder, state=state, sort=sort, limit=limit)
        return apaged(lambda page: self.call("readLeases", page, timeout=timeout), request, "leases")

    async def cancel_waiter(self, *, key: str, ticket: str, timeout: float = 30.0) -> Cancelled | NotCancelled:
        """Cancel a waiter.

        For an operator: takes the waiter with this ticket out of the line. Its task or call fails with `LeaseLost`
        (`cancelled`). A caller takes out its own request with `withdraw`.
        """
        request = given(key=key, ticket=ticket)
        return cast("Cancelled | NotCancelled", await self.call("cancelWaiter", request, timeout=timeout))

    async def cap(
        self,
        *,
        key: str,
        limit: int | Omitted | None = OMITTED,
        rates: list[CapRate] | Omitted | None = OMITTED,
        reason: str | None = None,
        for_seconds: int | None = None,
        kind: Literal["once"] | None = None,
        timeout: float = 30.0,
    ) -> Capped:
        """Cap or pause a key.

        For an operator: limits the total weight of the holders of a key, or the starts at its rates, whatever limits
        the callers name. A `limit` of 0 pauses the key. Current holders keep their grants, and the line keeps its
        order. Callers that the cap keeps out see its reason. To lift a part of the cap, send null: the line is then
        served.
        """
        request = given(key=key, reason=reason, forSeconds=for_seconds, kind=kind)
        request |= sent(limit=limit, rates=rates)
        return cast("Capped", await self.call("capKey", request, timeout=timeout))

    async def run_next(self, *, key: str, ticket: str, timeout: float = 30.0) -> Moved | NotMoved:
        """Move a waiter to the front.

        For an operator: moves the waiter with this ticket to the front, so that it receives the next grant. Current
        holders keep their grants. Only one waiter of a key can be moved at a time, and the last call counts. No other
        waiter is served while the moved one does not fit or sleeps.
        """
        request = given(key=key, ticket=ticket)
        return cast("Moved | NotMoved", await self.call("runNext", request, timeout=timeout))

    async def withdraw(
        self,
        *,
        key: str,
        request_id: str,
        holder: str,
        ticket: str | None = None,
        timeout: float = 30.0,
    ) -> Withdrawn | NotWithdrawn:
        """Withdraw a request.

        For a caller that stops waiting: takes its request out of the line, or ends its grant. The request id, the
        holder and the authenticated caller must be those of the acquisition. A call of the request that is still in
        line fails with `LeaseLost`. If the request had a grant, a retry also fails with `LeaseLost`: until the next
        grant of the key or, after a permit or a grant to a waiter, until eight more such grants have ended. A request
        that was withdrawn in line is not remembered, so a duplicate that arrives later may receive a grant: withdraw
        after the last try.
        """
        request = given(key=key, requestId=request_id, holder=holder, ticket=ticket)
        return cast("Withdrawn | NotWithdrawn", await self.call("withdraw", request, timeout=timeout))

    async def once_begin(
        self,
        *,
        key: str,
        holder: str,
        slot: str | None = None,
        per: str | None = None,
        zone: str | None = None,
        ttl_seconds: int | None = None,
        wait_seconds: int | None = None,
        request_id: str | None = None,
        keep_seconds: int | None = None,
        input_hash: str | None = None,
        data: Any = None,
        execution: str | None = None,
        timeout: float = 30.0,
    ) -> OnceRun | OnceDone | OnceSuperseded:
        """Begin a slot.

        Lets one caller at a time work for a slot of a key. When the slot is done, every caller receives the stored
        result instead. While you work, extend the grant with `heartbeat`. Then call `complete`, or `release` if the
        work has failed: the next caller then begins the same slot.
        """
        request = given(
            key=key,
            holder=holder,
            slot=slot,
            per=per,
            zone=zone,
            ttlSeconds=ttl_seconds,
            waitSeconds=wait_seconds,
            requestId=request_id,
            keepSeconds=keep_seconds,
            inputHash=input_hash,
            data=data,
            execution=execution,
        )
        return cast("OnceRun | OnceDone | OnceSuperseded", await self.call("onceBegin", request, timeout=timeout))

    async def once_complete(
        self,
        *,
        key: str,
        lease_id: str,
        result: Any = None,
        timeout: float = 30.0,
    ) -> OnceCompleted | OnceNotCompleted:
        """Complete a slot.

        Stores the result of the slot and ends the grant. If the caller no longer holds the grant, the result is not
        stored, and `completed` is false.
        """
        request = given(key=key, leaseId=lease_id, result=result)
        return cast("OnceCompleted | OnceNotCompleted", await self.call("onceComplete", request, timeout=timeout))

    async def forget(self, *, key: str, fence: int, timeout: float = 30.0) -> OnceForgotten:
        """Forget a slot.

        For an operator: forgets the slot that is done and its result, so that the next caller does the work again.
        """
        request = given(key=key, fence=fence)
        return cast("OnceForgotten", await self.call("onceForget", request, timeout=timeout))

    @overload
    async def read_once(
        self,
        *,
        key: str,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> OnceKey: ...

    @overload
    async def read_once(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> OncePage: ...

    async def read_once(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> OnceKey | OncePage:
        """Read a key of once, or list such keys.

        With `key`, reads who works for a slot of that key, which slot is done, and its result. Without `key`, lists
        keys page by page, without results. A page reads up to 1,000 records of the leases table.
        """
        request = given(key=key, prefix=prefix, limit=limit, cursor=cursor)
        return cast("OnceKey | OncePage", await self.call("readOnce", request, timeout=timeout))

    async def rate_reserve(
        self,
        *,
        key: str,
        holder: str,
        request_id: str | None = None,
        rates: list[ReserveRate],
        wait_seconds: int | None = None,
        settle: bool | None = None,
        timeout: float = 30.0,
    ) -> Reserved:
        """Reserve a start at a rate.

        Reserves a start for your work, so that no more units start in a period than the rates allow. The call answers
        at once: sleep until `startAt`, then begin. Starts are given in the order of the calls.
        """
        request = given(
            key=key,
            holder=holder,
            requestId=request_id,
            rates=rates,
            waitSeconds=wait_seconds,
            settle=settle,
        )
        return cast("Reserved", await self.call("rateReserve", request, timeout=timeout))

    async def rate_settle(
        self,
        *,
        key: str,
        reservation: str,
        units: dict[str, int] | None = None,
        cancel: Literal[True] | None = None,
        timeout: float = 30.0,
    ) -> Settled | ReservationCancelled:
        """Settle or cancel a reservation.

        Corrects the charge of a reservation to the units that the work really took, or cancels the reservation. A
        repeat changes nothing.
        """
        request = given(key=key, reservation=reservation, units=units, cancel=cancel)
        return cast("Settled | ReservationCancelled", await self.call("rateSettle", request, timeout=timeout))

    async def rate_forget(self, *, key: str, paid_until: str, timeout: float = 30.0) -> RateForgotten:
        """Forget the reservations of a key.

        For an operator: forgets all reservations of a key, so that the next caller starts at once. Callers that already
        have a start keep it, so more may start than the rates allow.
        """
        request = given(key=key, paidUntil=paid_until)
        return cast("RateForgotten", await self.call("rateForget", request, timeout=timeout))

    @overload
    async def read_rates(
        self,
        *,
        key: str,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> RateKey: ...

    @overload
    async def read_rates(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> RatePage: ...

    async def read_rates(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> RateKey | RatePage:
        """Read the rates of a key, or list such keys.

        With `key`, reads until when its rates are used up. Without `key`, lists keys page by page. A page reads up to
        1,000 records of the leases table.
        """
        request = given(key=key, prefix=prefix, limit=limit, cursor=cursor)
        return cast("RateKey | RatePage", await self.call("readRates", request, timeout=timeout))

    async def commit(
        self,
        *,
        path: str,
        if_none_match: Literal["*"] | None = None,
        if_match: str | None = None,
        body: str | None = None,
        encoding: Literal["utf8", "base64"] | None = None,
        source: str | None = None,
        source_etag: str | None = None,
        content_type: str | None = None,
        cache_control: str | None = None,
        content_disposition: str | None = None,
        content_encoding: str | None = None,
        metadata: dict[str, str] | None = None,
        commit_id: str | None = None,
        fence: CommitFence | None = None,
        wait_seconds: int | None = None,
        timeout: float = 30.0,
    ) -> Commit:
        """Commit an object.

        Creates an object, or replaces the object that has the expected ETag. If several callers create an object at the
        same path, or replace the same ETag, only one of them wins. A retry with the same `commitId` receives the
        outcome of the first try.
        """
        request = given(
            path=path,
            ifNoneMatch=if_none_match,
            ifMatch=if_match,
            body=body,
            encoding=encoding,
            source=source,
            sourceEtag=source_etag,
            contentType=content_type,
            cacheControl=cache_control,
            contentDisposition=content_disposition,
            contentEncoding=content_encoding,
            metadata=metadata,
            commitId=commit_id,
            fence=fence,
            waitSeconds=wait_seconds,
        )
        return cast("Commit", await self.call("commit", request, timeout=timeout))

    async def read_commit(self, *, path: str, timeout: float = 30.0) -> StoredObject:
        """Read an object and its commits.

        Reads the ETag, the metadata and the fence of an object, and whether a commit is under way.
        """
        request = given(path=path)
        return cast("StoredObject", await self.call("readCommit", request, timeout=timeout))

    async def stage_upload(
        self,
        *,
        content_type: str | None = None,
        size_bytes: int | None = None,
        timeout: float = 30.0,
    ) -> Upload:
        """Stage an upload.

        Returns a signed URL for the bytes of an object, such as one that is too large for `body`. A commit then names
        the `uploadId` as its `source`.
        """
        request = given(contentType=content_type, sizeBytes=size_bytes)
        return cast("Upload", await self.call("stageUpload", request, timeout=timeout))

    async def reset_fence(
        self,
        *,
        path: str,
        if_match: str,
        expected_fence: CommitFence,
        fence: CommitFence | None,
        commit_id: str | None = None,
        wait_seconds: int | None = None,
        timeout: float = 30.0,
    ) -> Commit:
        """Replace or lift a fence.

        For an administrator who has read the ETag and the fence of an object. The bytes stay, but the ETag changes.
        After a reset, the object must be committed to before its fence can be reset again.
        """
        request = given(
            path=path,
            ifMatch=if_match,
            expectedFence=expected_fence,
            commitId=commit_id,
            waitSeconds=wait_seconds,
        )
        request |= sent(fence=fence)
        return cast("Commit", await self.call("resetFence", request, timeout=timeout))

    async def read_in_flight(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> InFlightPage:
        """List commits in flight.

        Lists commits that have begun and have not replaced the object yet. The call scans the commit records, and reads
        the object of each recent one. With `commitProtocol=native` Holdfast does not write records, so the list shows
        only commits of third-party clients.
        """
        request = given(prefix=prefix, limit=limit, cursor=cursor)
        return cast("InFlightPage", await self.call("readInFlight", request, timeout=timeout))

    def commits_in_flight(
        self,
        *,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[PathInFlight]:
        """Lists the commits that are under way, page by page."""
        request = given(prefix=prefix, limit=limit)
        return apaged(lambda page: self.call("readInFlight", page, timeout=timeout), request, "commits")

    @overload
    async def publish(
        self,
        *,
        op: Literal["initLedger"],
        alias: str,
        request_id: str | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["publishCommit"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["publishIndex"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        allow_equal: bool | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["retract"],
        alias: str,
        request_id: str | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["compareAndSetRef"],
        alias: str,
        request_id: str | None = None,
        ref: Literal["commit", "index"],
        expected: CompareAndSetRefExpected | None,
        next: CompareAndSetRefNext,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["fastForwardCommit"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        max_retries: int | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["pushStatus"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordStatus,
        next: PushStatusNext,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["pushConfig"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordConfig,
        next: PushConfigNext,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["publishGraphSource"],
        alias: str,
        request_id: str | None = None,
        source_type: str,
        config: Any,
        dependencies: list[str],
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["publishGraphSourceIndex"],
        alias: str,
        request_id: str | None = None,
        address: str,
        t: int,
        timeout: float = 30.0,
    ) -> Published: ...

    @overload
    async def publish(
        self,
        *,
        op: Literal["retractGraphSource"],
        alias: str,
        request_id: str | None = None,
        timeout: float = 30.0,
    ) -> Published: ...

    async def publish(
        self,
        *,
        op: str,
        alias: str,
        request_id: str | None = None,
        address: str | None = None,
        t: int | None = None,
        allow_equal: bool | None = None,
        ref: Literal["commit", "index"] | None = None,
        expected: Any = OMITTED,
        next: Any = None,
        max_retries: int | None = None,
        source_type: str | None = None,
        config: Any = OMITTED,
        dependencies: list[str] | None = None,
        timeout: float = 30.0,
    ) -> Published:
        """Publish.

        Creates an alias, or changes what it points to: `op` says how. A publish that arrives late is `stale`, and
        changes nothing.
        """
        request = given(
            op=op,
            alias=alias,
            requestId=request_id,
            address=address,
            t=t,
            allowEqual=allow_equal,
            ref=ref,
            next=next,
            maxRetries=max_retries,
            sourceType=source_type,
            dependencies=dependencies,
        )
        request |= sent(expected=expected, config=config)
        return cast("Published", await self.call("publish", request, timeout=timeout))

    @overload
    async def repair_names(
        self,
        *,
        op: Literal["resetRef"],
        alias: str,
        request_id: str | None = None,
        ref: Literal["commit", "index"],
        expected: CompareAndSetRefExpected,
        next: CompareAndSetRefExpected,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    async def repair_names(
        self,
        *,
        op: Literal["resetStatus"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordStatus,
        next: PushStatusNext,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    async def repair_names(
        self,
        *,
        op: Literal["resetConfig"],
        alias: str,
        request_id: str | None = None,
        expected: SeenRecordConfig,
        next: PushConfigNext,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    async def repair_names(
        self,
        *,
        op: Literal["unretract"],
        alias: str,
        request_id: str | None = None,
        expected: UnretractExpected,
        timeout: float = 30.0,
    ) -> Repaired: ...

    @overload
    async def repair_names(
        self,
        *,
        op: Literal["purge"],
        alias: str,
        request_id: str | None = None,
        expected: PurgeExpected | None,
        timeout: float = 30.0,
    ) -> Repaired: ...

    async def repair_names(
        self,
        *,
        op: str,
        alias: str,
        request_id: str | None = None,
        ref: Literal["commit", "index"] | None = None,
        expected: Any,
        next: Any = None,
        timeout: float = 30.0,
    ) -> Repaired:
        """Repair an alias.

        For an administrator: sets counters and flags back, or removes an alias. Each operation takes effect only if the
        alias still is as the caller saw it.
        """
        request = given(op=op, alias=alias, requestId=request_id, ref=ref, next=next)
        request |= sent(expected=expected)
        return cast("Repaired", await self.call("repairNames", request, timeout=timeout))

    @overload
    async def read_names(
        self,
        *,
        alias: str,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> NameserviceRecord: ...

    @overload
    async def read_names(
        self,
        *,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> RecordPage: ...

    async def read_names(
        self,
        *,
        alias: str | None = None,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> NameserviceRecord | RecordPage:
        """Read an alias, or list aliases.

        With `alias`, reads the record of that alias. Without `alias`, lists records page by page.
        """
        request = given(alias=alias, kind=kind, prefix=prefix, limit=limit, cursor=cursor)
        return cast("NameserviceRecord | RecordPage", await self.call("readNames", request, timeout=timeout))

    def names(
        self,
        *,
        kind: Literal["ledger", "graph_source"] | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[NameserviceRecord]:
        """Lists the records of the nameservice that match, page by page."""
        request = given(kind=kind, prefix=prefix, limit=limit)
        return apaged(lambda page: self.call("readNames", page, timeout=timeout), request, "records")

    async def report(self, *, timeout: float = 30.0) -> Report:
        """Report what has expired.

        Scans the tables and the bucket for expired records, and writes a report. The records stay as they are. The
        schedule makes the same call.
        """
        request = given()
        return cast("Report", await self.call("report", request, timeout=timeout))

    async def read_expired(
        self,
        *,
        report_id: str | None = None,
        kind: ExpiredRecordKind | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> ReportPage:
        """Read a report. Reads the last complete report, or the report with the given id, page by page."""
        request = given(reportId=report_id, kind=kind, limit=limit, cursor=cursor)
        return cast("ReportPage", await self.call("readExpired", request, timeout=timeout))

    def expired(
        self,
        *,
        report_id: str | None = None,
        kind: ExpiredRecordKind | None = None,
        limit: int | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[ExpiredRecord]:
        """Lists the rows of a report that match, page by page."""
        request = given(reportId=report_id, kind=kind, limit=limit)
        return apaged(lambda page: self.call("readExpired", page, timeout=timeout), request, "rows")

    async def clean(
        self,
        *,
        report_id: str | None = None,
        kinds: list[ExpiredRecordKind] | None = None,
        older_than_seconds: int | None = None,
        dry_run: bool | None = None,
        never_deletable: bool | None = None,
        cursor: str | None = None,
        timeout: float = 30.0,
    ) -> CleanUp:
        """Delete expired records.

        Deletes reported records that have not changed since the report. By default the call only says what it would
        delete.
        """
        request = given(
            reportId=report_id,
            kinds=kinds,
            olderThanSeconds=older_than_seconds,
            dryRun=dry_run,
            neverDeletable=never_deletable,
            cursor=cursor,
        )
        return cast("CleanUp", await self.call("clean", request, timeout=timeout))

    async def read_contract(self, *, timeout: float = 30.0) -> dict[str, Any]:
        """Read the OpenAPI document.

        Returns the API of the deployed version as an OpenAPI 3.1 document. The answer may be cached.
        """
        request = given()
        return cast("dict[str, Any]", await self.call("readContract", request, timeout=timeout))

    async def read_health(self, *, timeout: float = 30.0) -> Health:
        """Check the health.

        Shows that the gateway, the authorizer and a function answer. The call does not read the tables or the bucket:
        to check those, acquire and release a lease. The caller needs a signature or a token, as on every route.
        """
        request = given()
        return cast("Health", await self.call("readHealth", request, timeout=timeout))

    async def whoami(self, *, timeout: float = 30.0) -> Whoami:
        """Read who the caller is, and what it may call.

        Returns the name of the authenticated caller, the version of the deployment, and for each call the permission
        that it needs and whether the caller has it. With IAM, `allowed` is null, because the service does not read IAM
        policies.
        """
        request = given()
        return cast("Whoami", await self.call("whoami", request, timeout=timeout))
