// Written from contract/openapi.json by npm run contract.

export interface paths {
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read this document
         * @description The contract of the version that is deployed. It may be cached.
         *
         *     Permission: `execute-api:Invoke` on `GET/openapi.json`.
         */
        get: operations["readContract"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/commits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what is at a path
         * @description Reads the ETag, the metadata and the fence of an object, and whether a commit is under way.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/commits`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readCommit"];
        put?: never;
        /**
         * Create or replace an object on a precondition
         * @description Of all callers that create an object at one path, or replace one and the same ETag, exactly one wins. A repeat with the same `commitId` is answered with what became of the commit.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/commits`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["commit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/commits/in-flight": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the commits that are under way
         * @description Lists commits that have begun and have not replaced what they found. It scans the commit records, and looks at the object of each one that is young enough. With `commitProtocol=native`, the service writes no records, and the list has writers of other clients alone.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/commits/in-flight`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readInFlight"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/commits/reset-fence": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace or lift the fence of an object
         * @description For an administrator who has seen the ETag and the fence of an object. The bytes stay, the ETag changes. The next reset of the object must wait for a commit.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/commits/reset-fence`, or a JWT with the scope of the parameter `adminScope` and `resetFenceScope`.
         */
        post: operations["resetFence"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/expired": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the rows of a report
         * @description Reads the last complete report, or the one asked for, page by page.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/expired`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readExpired"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/expired/clean": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete what has expired
         * @description Deletes reported records that are still the very ones reported. By default it only says what it would delete.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/expired/clean`, or a JWT with the scope of the parameter `adminScope` and `cleanScope`.
         */
        post: operations["clean"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/expired/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Report what has expired
         * @description Scans tables and bucket for expired records and writes them down, without changing any. The schedule calls it too.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/expired/report`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["report"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Ask whether the deployment answers, and with which version
         * @description Says that the gateway, the authorizer and a function answer. It reads no table and no bucket: what a caller needs of those, a lease that it acquires and releases shows. Every answer of a function names the version too, in the header `holdfast-version`.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/health`.
         */
        get: operations["readHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one key, or a page of keys
         * @description With `key`, reads the lease or the pool of that key, and counts the waiters in line. Without `key`, lists all keys page by page.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/leases`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readLeases"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/acquire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a lease, or learn who holds it
         * @description Takes the lease of a key. If another caller holds the lease, waits in line up to `waitSeconds`, or answers LeaseHeld with the holder and the expiry. With a `taskToken`, parks a Step Functions task in the line of the key. With `limit` or `mode`, takes a permit of a pool in the same way: several callers hold permits of a pool at once. If other callers use the key as the other kind, answers WrongKind at once, also with `waitSeconds`.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/acquire`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["acquire"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/break": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the lease or the permit that an operator saw
         * @description Ends a lease or a permit, named by its fence: at once, or with `wait` when the holder releases the grant or the ttl ends. Only the fence stops later writes of the holder.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/break`, or a JWT with the scope of the parameter `adminScope` and `breakScope`.
         */
        post: operations["breakLease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a task or a call out of the line
         * @description An operator takes a task or a call out of the line of a key, by its ticket. The task or the call fails with LeaseLost. Callers take their own calls out of the line with `withdraw`.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/cancel`, or a JWT with the scope of the parameter `adminScope` and `breakScope`.
         */
        post: operations["cancelWaiter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extend a lease
         * @description Extends a lease that the caller holds, or one of its own that expired and that nobody took.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/heartbeat`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["heartbeat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a lease back
         * @description Gives a lease back; the first in line gets it. A release by anybody but the holder is no error.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/release`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["release"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraw an acquisition of your own
         * @description Withdraws a call of the caller's own that waits in line, or the lease or the permit that it got: for a caller that has hung up, and does not know which. A call in line answers LeaseLost. A repeat of the request answers LeaseLost where the lease had been granted to it, until another caller has held the lease; of a permit, until eight others have ended. A request that was withdrawn before it had the lease is not remembered: a try of it that arrives later is a new acquisition, so withdraw after the last try. The request, the holder and the authenticated caller must be those of the acquisition.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/withdraw`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["withdraw"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/nameservice": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look an alias up, or list all of them
         * @description With `alias`, reads the whole record. Without it, lists records page by page.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/nameservice`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readNames"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/nameservice/publish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Publish what a ledger or graph source points to
         * @description Every write of the nameservice, by `op`. A publication that comes late is stale and changes nothing.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/nameservice/publish`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["publish"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/nameservice/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take back what publishing cannot
         * @description For administrators: sets counters and flags back, and removes aliases. Each operation is conditional on what the caller saw.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/nameservice/repair`, or a JWT with the scope of the parameter `adminScope` and `repairScope`.
         */
        post: operations["repairNames"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reserve a place for an upload
         * @description Signs a URL to upload bytes to. A commit then names the `uploadId` as its `source`.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/uploads`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["stageUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/whoami": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Ask who the caller is, and what it may call
         * @description Tells the caller as whom the service knows it, the version of the deployment, and what each call needs. The scopes of a JWT decide what it may call. What IAM allows is in policies that the service does not read, so it is null.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/whoami`.
         */
        get: operations["whoami"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A lease that the caller has acquired, or a permit of a pool. */
        AcquiredGrant: {
            /**
             * Format: date-time
             * @description When the lease was granted.
             */
            acquiredAt: string;
            /** @description What the holder left for others to see. */
            data?: unknown;
            /**
             * Format: date-time
             * @description When the lease ends unless a heartbeat extends it.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The fencing token. It rises with every new grant of the key.
             */
            fence: number;
            /** @description Who holds the lease, as the caller named itself. */
            holder: string;
            /** @description The name of the resource. */
            key: string;
            /** @description The holder's proof, for heartbeat and release. It stays the same over heartbeats. A secret. */
            leaseId: string;
            /**
             * Format: int64
             * @description Of a permit: how much all holders may weigh together, as this caller asked for it. Null for `exclusive`.
             */
            limit?: number | null;
            limitChanged?: {
                /**
                 * Format: int64
                 * @description The limit that the grant before named.
                 */
                from: number;
                /**
                 * Format: int64
                 * @description The limit of this permit. `limitChanged` is absent if the two limits are the same.
                 */
                to: number;
            };
            /**
             * @description Of a permit: beside other holders, or alone.
             * @enum {string}
             */
            mode?: "shared" | "exclusive";
            previous: components["schemas"]["PreviousHolder"] | null;
            /**
             * Format: int64
             * @description How much of the lease was left when the service answered, in milliseconds.
             */
            remainingMs: number;
            /** @description Whether the service had granted this request before: a retry, or a lost reply. */
            repeated: boolean;
            /**
             * Format: int64
             * @description The total weight of all holders of a pool, with expired holders whose room no caller has needed.
             */
            used?: number;
            /** @description New at every heartbeat. A secret. */
            version: string;
            /**
             * Format: int64
             * @description From the arrival of the call to its answer; of a task, from when it was parked to the message of its grant. One reading of the clock ends it and begins remainingMs: deadline = sentAt + waitedMs + remainingMs on the clock of the caller.
             */
            waitedMs: number;
            /**
             * Format: int64
             * @description Of a permit: how much it weighs. 1,000,000 for one who has the key alone.
             */
            weight?: number;
        };
        /** @description Takes a lease, or with `limit` or `mode` a permit. With a task token, parks a task for the lease or the permit. */
        AcquireRequest: {
            /** @description Any JSON up to 4 KiB and 32 levels deep, shown to everybody who reads the lease. */
            data?: unknown;
            /** @description The ARN of the Standard execution that will hold the lease or the permit. Its end frees it. */
            execution?: string;
            /**
             * @description Whether the call waits in line, and gets the lease in its turn. `false` looks and races instead: that costs fewer requests, and the order is left to chance.
             * @default true
             */
            fair?: boolean;
            /** @description How long the lease or the permit goes on after the execution ends with any status but SUCCEEDED, in seconds, at most to its own expiry: a function that the execution started may still work. 0 by default. Needs `execution`. */
            graceSeconds?: number;
            /** @description Who the caller is, shown to others. Up to 256 bytes of UTF-8. */
            holder: string;
            /** @description The name of the resource: any text up to 1,024 bytes of UTF-8. */
            key: string;
            /** @description Asks for a permit of the pool of the key: the permit is granted if all holders, with this permit, weigh at most `limit`. With `mode` `shared`, the default is 200. */
            limit?: number;
            /**
             * @description Asks for a permit of the pool of the key: beside others (`shared`, as with `limit`), or alone (`exclusive`). Permits take up to 256 bytes of `data`.
             * @enum {string}
             */
            mode?: "shared" | "exclusive";
            /** @description How long the task waits at most, in seconds. 86,400 where it is not given. Needs `taskToken`. */
            parkSeconds?: number;
            /** @description Names one acquisition, so that a retry finds the grant instead of a lease of its own. Up to 256 bytes of UTF-8. */
            requestId?: string;
            /** @description The ARN of an execution that works under the lease or the permit, which stays while it runs. Needs `execution`. */
            target?: string;
            /** @description The token of a Step Functions task: the task waits parked, and gets the grant as its output. Excludes `waitSeconds`. */
            taskToken?: string;
            /** @description Of the `retryWith` of an earlier LeaseHeld of this request: within five seconds it keeps the place in line. Needs `requestId`. */
            ticket?: string;
            /**
             * @description How long the lease lasts, in seconds.
             * @default 60
             */
            ttlSeconds?: number;
            /**
             * @description How long to wait inside the call for the lease to come free, in seconds. The deployment may allow less.
             * @default 0
             */
            waitSeconds?: number;
            /** @description How much the permit weighs, at most `limit`. 1 where it is not given. Needs `limit` or `mode`. */
            weight?: number;
        };
        /** @description The alias exists already. */
        AlreadyExists: components["schemas"]["Problem"] & {
            /** @description The alias, as `name:branch`. */
            alias: string;
            /** @enum {string} */
            code: "AlreadyExists";
            /**
             * @description What the alias is.
             * @enum {string}
             */
            kind?: "ledger" | "graph_source";
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:AlreadyExists";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "AlreadyExists";
        };
        /** @description Breaks the lease or the permit that an operator saw. */
        BreakRequest: {
            /**
             * Format: int64
             * @description The fence of the lease or the permit to end, as the operator read it.
             */
            fence: number;
            /** @description The name of the resource: any text up to 1,024 bytes of UTF-8. */
            key: string;
            /** @description True if the holder keeps the key until it releases the lease or its ttl ends. The next heartbeat of the holder fails with `LeaseLost`, and nothing extends the lease. Without `wait` the lease ends at once, while its holder may still work. */
            wait?: boolean;
        };
        /** @description The lease or the permit that an operator has broken. */
        Broken: {
            /** @constant */
            broken: true;
            /** @description True if the key is free for the next caller already. False with `wait`: the key waits for the release of the holder, or for `holderUntil`. */
            ended: boolean;
            /**
             * Format: int64
             * @description The fence of the lease or the permit that was broken.
             */
            fence: number;
            /** @description The holder, which is to end its work. Null if the record does not say. */
            holder: string | null;
            /**
             * Format: date-time
             * @description The expiry on record when the lease was broken. The holder may go on until then, unless a heartbeat fails earlier. Null if the record does not say.
             */
            holderUntil: string | null;
            /** @description The name of the resource. */
            key: string;
            /**
             * Format: date-time
             * @description The last heartbeat. Null if no heartbeat came since the grant, or the record does not say: then `holderUntil` is the bound.
             */
            lastHeartbeatAt: string | null;
        };
        /** @description The task or the call is out of the queue, and fails with LeaseLost. */
        Cancelled: {
            /** @constant */
            cancelled: true;
            /** @description The name of the resource. */
            key: string;
            /** @description The place in the queue that it had. */
            ticket: string;
        };
        /** @description Takes a task or a call out of the line of a key, by its ticket. */
        CancelRequest: {
            /** @description The name of the resource: any text up to 1,024 bytes of UTF-8. */
            key: string;
            /** @description The place in the queue, as `acquire` or a list of `waiters` shows it. */
            ticket: string;
        };
        /** @description What became of a reported record. */
        CleanedRecord: {
            /**
             * Format: date-time
             * @description When it expired.
             */
            expiredAt: string | null;
            /** @description Who left it, where the record says. */
            holder: string | null;
            /** @description The record's key attributes, the key of the object as `path`, or `key` and `fence` of a permit. */
            key: {
                [key: string]: string;
            };
            /**
             * @description What kind of record it is.
             * @enum {string}
             */
            kind: "abandonedLease" | "releasedLease" | "abandonedPermit" | "emptyPool" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow";
            /**
             * @description Why it was spared.
             * @enum {string}
             */
            why?: "tooYoung" | "ageUnknown" | "neverDeletable" | "leftToQueue" | "partOfRecord" | "fenceAhead" | "unrecognisable" | "changed" | "gone";
        };
        /** @description Deletes reported records that are still the very ones reported. */
        CleanRequest: {
            /** @description The `nextCursor` of the page before. */
            cursor?: string;
            /**
             * @description Whether to say only what would be deleted.
             * @default true
             */
            dryRun?: boolean;
            /** @description Only records of these kinds. */
            kinds?: ("abandonedLease" | "releasedLease" | "abandonedPermit" | "emptyPool" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow")[];
            /**
             * @description Whether to delete records too that the TTL of DynamoDB can never delete.
             * @default false
             */
            neverDeletable?: boolean;
            /**
             * Format: int64
             * @description Only records that expired at least so long ago, in seconds.
             * @default 3600
             */
            olderThanSeconds?: number;
            /** @description The report. The last complete one where it is not given. */
            reportId?: string;
        };
        /** @description What a clean-up did, or would do. */
        CleanUp: {
            deleted: components["schemas"]["Deleted"];
            /** @description Where true, nothing was written, and `deleted` is what would be tried. */
            dryRun: boolean;
            /** @description Passed as `cursor`, it goes on from here. Null at the end. */
            nextCursor: string | null;
            /**
             * Format: double
             * @description What was asked for, or how long fences are kept if that is longer.
             */
            olderThanSeconds: number;
            /** @description The report that it went by. */
            reportId: string;
            spared: components["schemas"]["Spared"];
            /**
             * @description Why it has not come to the end of the report. Call again with `nextCursor`.
             * @enum {string|null}
             */
            stoppedBy: "time" | "Throttled" | "Unavailable" | "OutcomeUnknown" | null;
        };
        /** @description A commit that has landed. */
        Commit: {
            /** @description The id of the commit, sent or made by the service. */
            commitId: string;
            /** @description There, the ETag of what is there now. */
            currentEtag?: string;
            /** @description Of what was committed, with its quotes. Null where others have replaced it by the time of the answer. */
            etag: string | null;
            /**
             * Format: int64
             * @description How often the precondition was contended.
             */
            generation?: number;
            /** @description The key of the object in the bucket. */
            path: string;
            /**
             * @description How the deployment decides who wins.
             * @enum {string}
             */
            protocol: "dynamo" | "native";
            /** @description Whether the commit may have landed before this call. */
            repeated: boolean;
            /**
             * Format: int64
             * @description In bytes. Null where `etag` is.
             */
            size: number | null;
            /** @description The version of the object, in a bucket that keeps versions. */
            versionId?: string;
        };
        /** @description A commit to this state of the path that has begun and has not replaced it. Its writer may have died. */
        CommitInFlight: {
            /** @description Null where another client writes. */
            commitId: string | null;
            /**
             * Format: int64
             * @description How often the state was contended.
             */
            generation: number;
            /**
             * Format: int64
             * @description How long its writer may take, in milliseconds.
             */
            timeoutMs: number | null;
            /**
             * Format: date-time
             * @description When it began. Null where another client writes.
             */
            writtenAt: string | null;
        };
        /** @description Another writer is committing to the path. */
        CommitInProgress: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "CommitInProgress";
            /**
             * Format: int64
             * @description How often the state was contended.
             */
            generation: number;
            /** @description The path of the commit. */
            path: string;
            /**
             * Format: int64
             * @description After how many milliseconds a retry may succeed.
             */
            retryAfterMs: number;
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:CommitInProgress";
        };
        /** @description Creates or replaces an object on a precondition. One of `ifNoneMatch` and `ifMatch`, and one of `body` and `source`, must be given. */
        CommitRequest: {
            /** @description The content, up to 1 MiB: text, or base64 with padding where `encoding` says so. Stage an upload for more. */
            body?: string;
            /** @description The Cache-Control header to store with the object. */
            cacheControl?: string;
            /** @description Names one commit, so that a repeat is answered with what became of it. Without `=?`. */
            commitId?: string;
            /** @description The Content-Disposition header to store with the object. */
            contentDisposition?: string;
            /** @description The Content-Encoding header to store with the object. Not aws-chunked, which S3 takes for its own. */
            contentEncoding?: string;
            /** @description The media type. Without it the upload's, or else application/octet-stream. */
            contentType?: string;
            /**
             * @description How `body` is written. utf8 where it is not given.
             * @enum {string}
             */
            encoding?: "utf8" | "base64";
            /** @description Ties the object to a lease: only commits with this key and a token at least as high replace it. */
            fence?: {
                /** @description The key of the lease. */
                key: string;
                /**
                 * Format: int64
                 * @description The `fence` of the grant. At most a day ahead of the clock in milliseconds.
                 */
                token: number;
            };
            /** @description Replace: exactly this ETag must be there. */
            ifMatch?: string;
            /**
             * @description Create: nothing may be there.
             * @enum {string}
             */
            ifNoneMatch?: "*";
            /** @description What to put on the object: at most 32 names and 1 KiB together. Names begin with anything but `holdfast-`, values are printable ASCII without `=?`. */
            metadata?: {
                [key: string]: string;
            };
            /** @description The key of the object: 1 to 1,024 bytes of UTF-8, with no empty segment, no segment '.' or '..', and not under .holdfast/. */
            path: string;
            /** @description The `uploadId` of a staged upload, in place of a body. */
            source?: string;
            /** @description The upload's own ETag, as S3 answered it. The commit takes the upload only as long as it has that one. */
            sourceEtag?: string;
            /**
             * @description How long to wait for the commit record of another client, in seconds.
             * @default 0
             */
            waitSeconds?: number;
        } & ((unknown | unknown) & (unknown | unknown));
        /** @description Sets a ref where it is as expected. */
        CompareAndSetRef: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What must stand there. Null where the alias must not exist; it is created as a ledger. */
            expected: {
                /** @description Where the commit or index is. */
                address: string | null;
                /**
                 * Format: int64
                 * @description Its watermark.
                 */
                t: number;
            } | null;
            /** @description What to set it to. */
            next: {
                /** @description Where the commit or index is. */
                address: string;
                /**
                 * Format: int64
                 * @description Its watermark.
                 */
                t: number;
            };
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "compareAndSetRef";
            /**
             * @description Which of the two pointers.
             * @enum {string}
             */
            ref: "commit" | "index";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description The record is not in the expected state. */
        Conflict: components["schemas"]["Problem"] & {
            actual: components["schemas"]["Lease"] | components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["SeenRecord"] | components["schemas"]["Retraction"] | null;
            /** @description The alias, as `name:branch`. */
            alias?: string;
            /** @enum {string} */
            code: "Conflict";
            /** @description The key. */
            key?: string;
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:Conflict";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "Conflict";
        };
        /** @description What was deleted, or would be. */
        Deleted: {
            by: {
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                abandonedLease?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                abandonedPermit?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                commit?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                emptyPool?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                firstSight?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                nameserviceRow?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                releasedLease?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                upload?: number;
                /**
                 * Format: int64
                 * @description How many of the kind.
                 */
                waiter?: number;
            };
            /**
             * Format: int64
             * @description How many.
             */
            count: number;
            /** @description The first hundred. */
            records: components["schemas"]["CleanedRecord"][];
        };
        /** @description The attributes by which the clean-up recognises this very record. Null for one that was not there. */
        ExpiredIdentity: {
            [key: string]: {
                S: string;
            } | {
                N: string;
            } | null;
        };
        /** @description A record that has expired and still exists. */
        ExpiredRecord: {
            /**
             * Format: int64
             * @description From `expiredAt` to when the row was read, in seconds. 0 where that is not known.
             */
            ageSeconds: number;
            /**
             * Format: date-time
             * @description When it expired. Null where that cannot be read.
             */
            expiredAt: string | null;
            /** @description Who left it, where the record says. */
            holder: string | null;
            identity: components["schemas"]["ExpiredIdentity"] | null;
            /** @description The record's key attributes, the key of the object as `path`, or `key` and `fence` of a permit. */
            key: {
                [key: string]: string;
            };
            /**
             * @description What kind of record it is.
             * @enum {string}
             */
            kind: "abandonedLease" | "releasedLease" | "abandonedPermit" | "emptyPool" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow";
            /** @description Whether the TTL of DynamoDB can never delete it. */
            neverDeletable: boolean;
            /** @description Why it is reported, in words. */
            reason: string;
            /**
             * @description Why not.
             * @enum {string|null}
             */
            ttlFault: "milliseconds" | "missing" | "notANumber" | "notATime" | "olderThanFiveYears" | null;
        };
        /** @description By kind of record. */
        ExpiredTallies: {
            abandonedLease: components["schemas"]["ExpiredTally"];
            abandonedPermit: components["schemas"]["ExpiredTally"];
            commit: components["schemas"]["ExpiredTally"];
            emptyPool: components["schemas"]["ExpiredTally"];
            firstSight: components["schemas"]["ExpiredTally"];
            nameserviceRow: components["schemas"]["ExpiredTally"];
            releasedLease: components["schemas"]["ExpiredTally"];
            upload: components["schemas"]["ExpiredTally"];
            waiter: components["schemas"]["ExpiredTally"];
        };
        /** @description How many records of a kind have expired. */
        ExpiredTally: {
            /**
             * Format: int64
             * @description How many.
             */
            count: number;
            /**
             * Format: int64
             * @description The age of the oldest, in seconds.
             */
            oldestAgeSeconds: number;
        };
        /** @description Raises the commit head to a higher `t`, and creates the ledger where there is none. */
        FastForwardCommit: {
            /** @description Where the commit or index is. */
            address: string;
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description How often to try again where another caller creates it.
             * @default 5
             */
            maxRetries?: number;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "fastForwardCommit";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
            /**
             * Format: int64
             * @description Its watermark.
             */
            t: number;
        };
        /** @description The lease that an object belongs to. */
        Fence: {
            /** @description The lease's key. */
            key: string;
            /**
             * Format: int64
             * @description The highest fence that has written the object.
             */
            token: number;
        };
        /** @description The object belongs to a newer holder of the fence. */
        FenceRejected: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "FenceRejected";
            /**
             * Format: int64
             * @description The highest token that has written the object.
             */
            highest: number;
            /** @description The path of the commit. */
            path: string;
            /** @enum {integer} */
            status: 412;
            /**
             * Format: int64
             * @description The token of this commit. Null where it has none.
             */
            token: number | null;
            /** @enum {string} */
            type: "urn:holdfast:error:FenceRejected";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "FenceRejected";
        };
        /** @description The caller may not do this. */
        Forbidden: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "Forbidden";
            /** @description What the caller lacks. */
            missing: string;
            /** @enum {integer} */
            status: 403;
            /** @enum {string} */
            type: "urn:holdfast:error:Forbidden";
        };
        /** @description What API Gateway answers where no function does. */
        GatewayRefusal: {
            /** @description What API Gateway says. */
            message: string;
        };
        /** @description A lease as its holder sees it. */
        Grant: {
            /**
             * Format: date-time
             * @description When the lease was granted.
             */
            acquiredAt: string;
            /** @description What the holder left for others to see. */
            data?: unknown;
            /**
             * Format: date-time
             * @description When the lease ends unless a heartbeat extends it.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The fencing token. It rises with every new grant of the key.
             */
            fence: number;
            /** @description Who holds the lease, as the caller named itself. */
            holder: string;
            /** @description The name of the resource. */
            key: string;
            /** @description The holder's proof, for heartbeat and release. It stays the same over heartbeats. A secret. */
            leaseId: string;
            /**
             * Format: int64
             * @description How much of the lease was left when the service answered, in milliseconds.
             */
            remainingMs: number;
            /** @description New at every heartbeat. A secret. */
            version: string;
        };
        /** @description The record of a graph source. */
        GraphSource: {
            /** @description `name:branch`. */
            alias: string;
            /** @description The part of the alias behind the colon. */
            branch: string;
            config: components["schemas"]["GraphSourceConfig"];
            /** @description The aliases that it is made from. */
            dependencies: string[];
            index: components["schemas"]["Pointer"];
            /** @constant */
            kind: "graph_source";
            /** @description Items that should be there and are not. The next write to such a concern restores it. */
            missing?: ("config" | "head" | "index" | "meta" | "status")[];
            /** @description The part of the alias before the colon. */
            name: string;
            /**
             * @description Another client made the record larger than an answer can be: long texts are cut, the rest is left out.
             * @constant
             */
            oversized?: true;
            /** @description Whether it is retired. It is still visible. */
            retracted: boolean;
            /** @description What kind of graph source it is, for example `db:Bm25Index`. */
            sourceType: string;
            status: components["schemas"]["Status"];
            /**
             * Format: date-time
             * @description When any of its items was last written.
             */
            updatedAt: string;
        };
        /** @description The config of a graph source. */
        GraphSourceConfig: {
            /**
             * Format: int64
             * @description The version, which rises with every publication.
             */
            v: number;
            /** @description The config itself. */
            value: unknown;
        };
        /** @description That the deployment answers. */
        Health: {
            /**
             * @description It answers.
             * @enum {string}
             */
            status: "ok";
            /** @description The version of the deployment. */
            version: string;
        };
        /** @description Extends a lease. */
        HeartbeatRequest: {
            /** @description The name of the resource: any text up to 1,024 bytes of UTF-8. */
            key: string;
            /** @description The `leaseId` of the grant. */
            leaseId: string;
            /** @description How long the lease lasts from now on, in seconds. The standing one where not given. */
            ttlSeconds?: number;
        };
        /** @description How many leases and permits a namespace holds. */
        HeldLeases: {
            /**
             * Format: int64
             * @description How many. A permit counts as one.
             */
            leases: number;
            /** @description What their keys begin with. */
            namespace: string;
        };
        /** @description A page of commits that are under way. It may be empty and still have a cursor. */
        InFlightPage: {
            /** @description In no particular order. */
            commits: components["schemas"]["PathInFlight"][];
            /** @description Passed as `cursor`, it gets the next page. Null on the last page. */
            nextCursor: string | null;
            /**
             * @description How the deployment decides who wins.
             * @enum {string}
             */
            protocol: "dynamo" | "native";
        };
        /** @description Creates a ledger. */
        InitLedger: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "initLedger";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description The request is not valid. */
        InvalidRequest: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "InvalidRequest";
            /** @description Every fault that was found, up to twenty. */
            issues: components["schemas"]["Issue"][];
            /** @enum {integer} */
            status: 400;
            /** @enum {string} */
            type: "urn:holdfast:error:InvalidRequest";
        };
        /** @description One fault of a request. */
        Issue: {
            /** @description What is wrong with it. */
            message: string;
            /** @description The field, as a dotted path into the payload, or the part of the HTTP request. */
            path: string;
        };
        /** @description A page of keys. An empty page may have a cursor. */
        KeyPage: {
            /** @description In the order of `sort`. Without `sort`, in no particular order. */
            leases: components["schemas"]["ListedKey"][];
            /** @description Passed as `cursor`, it gets the next page. Null on the last page. */
            nextCursor: string | null;
        };
        /** @description A lease as anybody sees it. */
        Lease: {
            /**
             * Format: date-time
             * @description When it was granted.
             */
            acquiredAt: string | null;
            /**
             * Format: date-time
             * @description When an operator broke the lease, or the last lease of a key that has no holder. Null if no operator did, or the record does not say.
             */
            brokenAt: string | null;
            /** @description The operator that did: an IAM ARN or the subject of a JWT, up to 256 characters. Null also if the API did not authenticate the operator, as `npm start`. */
            brokenBy: string | null;
            /** @description What the holder left for others to see. Null where there is nothing. */
            data: unknown;
            /** @description True if an operator broke the lease, which stays until its holder releases the lease or its ttl ends. */
            ending: boolean;
            /** @description The ARN of the execution that holds the lease, or held the lease when that execution ended. Null if there is no such execution. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When it ends. Null where nobody holds it.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token of the last grant.
             */
            fence: number | null;
            /** @description Who holds it, or held it last. Null where the record does not say. */
            holder: string | null;
            /** @description True if that execution has ended, and the holder may go on for its grace, or for as long as the holder sends heartbeats. */
            inGrace: boolean;
            /** @description The name of the resource. */
            key: string;
            /**
             * Format: int64
             * @description How much of it was left when the service answered, in milliseconds.
             */
            remainingMs: number | null;
            /**
             * @description Whether somebody holds the lease.
             * @enum {string}
             */
            state: "held" | "expired" | "released" | "free";
            /**
             * Format: double
             * @description What each heartbeat extends it by, in seconds. Null where nobody holds it.
             */
            ttlSeconds: number | null;
        };
        /** @description Someone else holds the lease. */
        LeaseHeld: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "LeaseHeld";
            /**
             * Format: date-time
             * @description When it ends unless its holder extends it.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token of that grant.
             */
            fence: number | null;
            /** @description Who holds it. Null where the record does not say. */
            holder: string | null;
            /** @description Of a pool: those that end first, up to ten, and expired permits last. The first is `holder`. */
            holders?: components["schemas"]["PermitHolder"][];
            /** @description The key. */
            key: string;
            /**
             * Format: int64
             * @description Of a pool: how much they may weigh together, as this caller asked for it. Null for `exclusive`.
             */
            limit?: number | null;
            /**
             * Format: int64
             * @description After a wait in line: how many of those are before this call, and one. Counted as `waiting`.
             */
            place?: number;
            /**
             * Format: int64
             * @description After how many milliseconds a retry may succeed.
             */
            retryAfterMs: number;
            /** @description After a wait in line: what to add to the same call, within five seconds, to keep the place. Without `ticket` there is no place to keep. */
            retryWith?: {
                [key: string]: string;
            };
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:LeaseHeld";
            /**
             * Format: int64
             * @description Of a pool: how much all holders weigh together.
             */
            used?: number;
            /**
             * Format: int64
             * @description After a wait in line: how many others are in line, counted up to 100. A lower bound while rows of 200 callers that gave up stand in line.
             */
            waiting?: number;
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "LeaseHeld";
        };
        /** @description The lease is no longer yours. */
        LeaseLost: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "LeaseLost";
            /** @description Who holds the lease now. Null where nobody does, or the record does not say. */
            holder: string | null;
            /** @description The key. */
            key: string;
            /**
             * @description How it was lost.
             * @enum {string}
             */
            reason: "released" | "taken" | "broken" | "unknown" | "cancelled";
            /** @enum {integer} */
            status: 412;
            /** @enum {string} */
            type: "urn:holdfast:error:LeaseLost";
        };
        /** @description A lease, with how many tasks and callers are in line for it. */
        LeaseWithQueue: {
            /**
             * Format: date-time
             * @description When it was granted.
             */
            acquiredAt: string | null;
            /**
             * Format: date-time
             * @description When an operator broke the lease, or the last lease of a key that has no holder. Null if no operator did, or the record does not say.
             */
            brokenAt: string | null;
            /** @description The operator that did: an IAM ARN or the subject of a JWT, up to 256 characters. Null also if the API did not authenticate the operator, as `npm start`. */
            brokenBy: string | null;
            /** @description What the holder left for others to see. Null where there is nothing. */
            data: unknown;
            /** @description True if an operator broke the lease, which stays until its holder releases the lease or its ttl ends. */
            ending: boolean;
            /** @description The ARN of the execution that holds the lease, or held the lease when that execution ended. Null if there is no such execution. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When it ends. Null where nobody holds it.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token of the last grant.
             */
            fence: number | null;
            /** @description Whether the key has a record. If not, no caller has used the key, or none since the retention of its record has ended. */
            hasRecord: boolean;
            /** @description Who holds it, or held it last. Null where the record does not say. */
            holder: string | null;
            /** @description True if that execution has ended, and the holder may go on for its grace, or for as long as the holder sends heartbeats. */
            inGrace: boolean;
            /** @description The name of the resource. */
            key: string;
            /** @constant */
            kind: "lease";
            previous: components["schemas"]["PreviousHolder"] | null;
            /**
             * Format: int64
             * @description How much of it was left when the service answered, in milliseconds.
             */
            remainingMs: number | null;
            /**
             * @description Whether somebody holds the lease.
             * @enum {string}
             */
            state: "held" | "expired" | "released" | "free";
            /**
             * Format: double
             * @description What each heartbeat extends it by, in seconds. Null where nobody holds it.
             */
            ttlSeconds: number | null;
            /** @description The oldest of those, where the caller asked for them. */
            waiters?: components["schemas"]["Waiter"][];
            /**
             * Format: int64
             * @description How many tasks and callers are in line for it, counted up to 100, or up to `limit` where that is more and `waiters` lists them. A lower bound while rows of 200 callers that gave up stand in line.
             */
            waiting: number;
        };
        /** @description The record of a ledger. */
        Ledger: {
            /** @description `name:branch`. */
            alias: string;
            /** @description The part of the alias behind the colon. */
            branch: string;
            commit: components["schemas"]["Pointer"];
            config: components["schemas"]["LedgerConfig"];
            index: components["schemas"]["Pointer"];
            /** @constant */
            kind: "ledger";
            /** @description Items that should be there and are not. The next write to such a concern restores it. */
            missing?: ("config" | "head" | "index" | "meta" | "status")[];
            /** @description The part of the alias before the colon. */
            name: string;
            /**
             * @description Another client made the record larger than an answer can be: long texts are cut, the rest is left out.
             * @constant
             */
            oversized?: true;
            /** @description Whether it is retired. It is still visible. */
            retracted: boolean;
            status: components["schemas"]["Status"];
            /**
             * Format: date-time
             * @description When any of its items was last written.
             */
            updatedAt: string;
        };
        /** @description The config of a ledger. */
        LedgerConfig: {
            payload: components["schemas"]["LedgerConfigPayload"] | null;
            /**
             * Format: int64
             * @description The version, which rises with every change.
             */
            v: number;
        };
        /** @description What a ledger is configured with. */
        LedgerConfigPayload: {
            /** @description Where the default context is. */
            defaultContextAddress?: string;
            /** @description Whatever the writer added. */
            extra?: {
                [key: string]: unknown;
            };
        };
        /** @description A key as a list shows it. Of a pool, the fields from `holder` to `data` are those of the permit that ends first, or with `sort` `held` of the oldest permit. */
        ListedKey: {
            /**
             * Format: date-time
             * @description When it was granted.
             */
            acquiredAt: string | null;
            /**
             * Format: date-time
             * @description When an operator broke the lease, or the last lease of a key that has no holder. Null if no operator did, or the record does not say.
             */
            brokenAt: string | null;
            /** @description The operator that did: an IAM ARN or the subject of a JWT, up to 256 characters. Null also if the API did not authenticate the operator, as `npm start`. */
            brokenBy: string | null;
            /** @description What the holder left for others to see. Null where there is nothing. */
            data: unknown;
            /** @description True if an operator broke the lease, which stays until its holder releases the lease or its ttl ends. */
            ending: boolean;
            /** @description The ARN of the execution that holds the lease, or held the lease when that execution ended. Null if there is no such execution. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When it ends. Null where nobody holds it.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token of the last grant.
             */
            fence: number | null;
            /** @description Who holds it, or held it last. Null where the record does not say. */
            holder: string | null;
            /**
             * Format: int64
             * @description The number of holders of a pool.
             */
            holders?: number;
            /** @description True if that execution has ended, and the holder may go on for its grace, or for as long as the holder sends heartbeats. */
            inGrace: boolean;
            /** @description The name of the resource. */
            key: string;
            /**
             * @description The kind of the key.
             * @enum {string}
             */
            kind: "lease" | "pool";
            /**
             * Format: int64
             * @description The limit that the last grant of a pool named. Null if no grant has named a limit.
             */
            limit?: number | null;
            /**
             * Format: int64
             * @description How much of it was left when the service answered, in milliseconds.
             */
            remainingMs: number | null;
            /**
             * @description Whether somebody holds the lease.
             * @enum {string}
             */
            state: "held" | "expired" | "released" | "free";
            /**
             * Format: double
             * @description What each heartbeat extends it by, in seconds. Null where nobody holds it.
             */
            ttlSeconds: number | null;
            /**
             * Format: int64
             * @description The total weight of all holders of a pool, with expired holders whose room no caller has needed.
             */
            used?: number;
            /**
             * Format: int64
             * @description Up to how many tasks and callers are in line: the record counts some that have left too. Reading the key counts the line itself.
             */
            waiting: number;
        };
        /** @description Whether the caller may send a call. */
        MayCall: {
            /** @description Whether the caller may send it. Null where only IAM knows. */
            allowed: boolean | null;
            /** @description The `operationId` of the call. */
            operation: string;
            /** @description The permission or scope that it needs. Null where every caller may send it. */
            permission: string | null;
            /** @description Its method and path. */
            route: string;
        };
        /** @description Everything that stands under an alias. */
        NameserviceRecord: components["schemas"]["Ledger"] | components["schemas"]["GraphSource"];
        /** @description The task or the call was not waiting. */
        NotCancelled: {
            /** @constant */
            cancelled: false;
            /** @description The name of the resource. */
            key: string;
            /**
             * @description The waiter has its grant already, its task or call no longer waits, or there is no such ticket.
             * @enum {string}
             */
            reason: "granted" | "gone" | "unknown";
            /** @description The place in the queue that was asked for. */
            ticket: string;
        };
        /** @description There is no such record. */
        NotFound: components["schemas"]["Problem"] & {
            /** @description The alias, as `name:branch`. */
            alias?: string;
            /** @enum {string} */
            code: "NotFound";
            /** @description The key. */
            key?: string;
            /**
             * @description What the alias is.
             * @enum {string}
             */
            kind?: "ledger" | "graph_source";
            /** @description The report. Null where the caller named none. */
            reportId?: string | null;
            /** @description The upload that the commit names. */
            source?: string;
            /** @enum {integer} */
            status: 404;
            /** @enum {string} */
            type: "urn:holdfast:error:NotFound";
        };
        /** @description The caller did not hold the lease. That is no error, because releases stand in cleanup code. */
        NotReleased: {
            /** @description The name of the resource. */
            key: string;
            /**
             * @description Another caller has it, an operator broke it, or there is no trace of it.
             * @enum {string}
             */
            reason: "taken" | "broken" | "unknown";
            /** @constant */
            released: false;
        };
        /** @description There was no such request to withdraw. */
        NotWithdrawn: {
            /** @constant */
            cancelled: false;
            /** @description The name of the resource. */
            key: string;
            /**
             * @description No call of the caller's waits by that request, and it has no lease, or no longer.
             * @enum {string}
             */
            reason: "unknown";
            /** @description The request. */
            requestId: string;
        };
        /** @description The outcome of the write is unknown. */
        OutcomeUnknown: components["schemas"]["Problem"] & {
            actual?: components["schemas"]["Lease"] | components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["SeenRecord"] | components["schemas"]["Retraction"] | null;
            /** @description The alias, as `name:branch`. */
            alias?: string;
            /** @enum {string} */
            code: "OutcomeUnknown";
            /** @description The key. */
            key?: string;
            /** @description The path of the commit. */
            path?: string;
            /**
             * Format: int64
             * @description After how many milliseconds a retry may succeed.
             */
            retryAfterMs: number;
            /** @description What to add to the same call. */
            retryWith: {
                [key: string]: string;
            };
            /** @enum {integer} */
            status: 504;
            /** @enum {string} */
            type: "urn:holdfast:error:OutcomeUnknown";
        };
        /** @description A task that waits in the queue, or that the service has answered through Step Functions already. */
        Parked: {
            /** @description Who waits. */
            holder: string;
            /** @description The name of the resource. */
            key: string;
            /** @description False where the task was notified at once, or is being notified by another call. */
            parked: boolean;
            /** @description The place in the queue. */
            ticket: string;
        };
        /** @description A commit that has begun and has not replaced what it found. Its writer may have died. */
        PathInFlight: {
            /** @description Null where another client writes. */
            commitId: string | null;
            /** @description What it replaces, with its quotes. Null where it creates the object. */
            expectedEtag: string | null;
            /**
             * Format: int64
             * @description How often the state was contended.
             */
            generation: number;
            /** @description The key of the object in the bucket. */
            path: string;
            /**
             * Format: int64
             * @description What was left of its writer's time when the service answered. Null where another client writes.
             */
            remainingMs: number | null;
            /**
             * Format: int64
             * @description How long its writer may take, in milliseconds.
             */
            timeoutMs: number | null;
            /**
             * Format: date-time
             * @description When it began. Null where another client writes.
             */
            writtenAt: string | null;
        };
        /** @description The body is too large. */
        PayloadTooLarge: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "PayloadTooLarge";
            /**
             * Format: int64
             * @description The most bytes that it may have, where it has more.
             */
            limitBytes?: number;
            /**
             * Format: int64
             * @description The most values that it may hold, where it holds more.
             */
            limitValues?: number;
            /** @enum {integer} */
            status: 413;
            /** @enum {string} */
            type: "urn:holdfast:error:PayloadTooLarge";
        };
        /** @description A permit as anybody sees it. */
        Permit: {
            /**
             * Format: date-time
             * @description When it was granted.
             */
            acquiredAt: string;
            /**
             * Format: date-time
             * @description When the operator broke the permit. Null if `ending` is false.
             */
            brokenAt: string | null;
            /** @description The operator: an IAM ARN or the subject of a JWT, up to 256 characters. Null also if the API did not authenticate the operator. */
            brokenBy: string | null;
            /** @description What the holder left for others to see. Null where there is nothing. */
            data: unknown;
            /** @description True if an operator broke the permit, which stays until its holder releases the permit or its ttl ends. */
            ending: boolean;
            /** @description The ARN of the execution that holds the permit, or held the permit when that execution ended. Null if there is no such execution. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When it ends unless a heartbeat extends it.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The fencing token of the permit.
             */
            fence: number;
            /** @description Who holds it, as the caller named itself. */
            holder: string;
            /** @description True if that execution has ended, and the holder may go on for its grace, or for as long as the holder sends heartbeats. */
            inGrace: boolean;
            /**
             * @description Of a permit: beside other holders, or alone.
             * @enum {string}
             */
            mode: "shared" | "exclusive";
            /**
             * Format: int64
             * @description How much of it was left when the service answered, in milliseconds.
             */
            remainingMs: number;
            /**
             * @description Whether its time is over. Until its place is needed, a heartbeat revives it.
             * @enum {string}
             */
            state: "held" | "expired";
            /**
             * Format: double
             * @description What each heartbeat extends it by, in seconds.
             */
            ttlSeconds: number;
            /**
             * Format: int64
             * @description Of a permit: how much it weighs. 1,000,000 for one who has the key alone.
             */
            weight: number;
        };
        /** @description One of those who hold permits of a pool. */
        PermitHolder: {
            /**
             * Format: date-time
             * @description When it ends unless a heartbeat extends it.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The fencing token of the permit.
             */
            fence: number;
            /** @description Who holds it, as the caller named itself. */
            holder: string;
            /**
             * @description Of a permit: beside other holders, or alone.
             * @enum {string}
             */
            mode: "shared" | "exclusive";
            /**
             * Format: int64
             * @description Of a permit: how much it weighs. 1,000,000 for one who has the key alone.
             */
            weight: number;
        };
        /** @description What an alias points to: the head of its commits, or of its index. */
        Pointer: {
            /** @description Null while nothing has been published. */
            address: string | null;
            /**
             * Format: int64
             * @description The watermark: a whole number that publishing only ever raises.
             */
            t: number;
        };
        /** @description A pool as anybody sees it. */
        Pool: {
            /** @description Those that came first, first. */
            holders: components["schemas"]["Permit"][];
            /** @description The name of the pool. */
            key: string;
            /** @constant */
            kind: "pool";
            /**
             * Format: int64
             * @description The limit that the last grant named. Null if no grant has named a limit.
             */
            limit: number | null;
            /** @description The holder whose grant named that limit. Null if the record does not say. */
            limitBy: string | null;
            /**
             * Format: int64
             * @description The total weight of all holders of a pool, with expired holders whose room no caller has needed.
             */
            used: number;
            /** @description The oldest of those, where the caller asked for them. */
            waiters?: components["schemas"]["Waiter"][];
            /**
             * Format: int64
             * @description How many tasks and callers are in line for a permit, counted up to 100, or up to `limit` where that is more and `waiters` lists them. A lower bound while rows of 200 callers that gave up stand in line.
             */
            waiting: number;
        };
        /** @description The object is not in the expected state. */
        PreconditionFailed: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "PreconditionFailed";
            /** @description What is there. Null where nothing is. */
            etag: string | null;
            fence?: components["schemas"]["Fence"] | null;
            /** @description The path of the commit. */
            path: string;
            /** @enum {integer} */
            status: 412;
            /** @enum {string} */
            type: "urn:holdfast:error:PreconditionFailed";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "PreconditionFailed";
        };
        /** @description Who had the lease before, and how that ended. Null where the record does not tell: there was none, it was a client of another make, or the answer to a first try was lost. */
        PreviousHolder: {
            /**
             * Format: date-time
             * @description When it ended.
             */
            at: string;
            /** @description Of a broken lease: the operator that broke it, an IAM ARN or the subject of a JWT, up to 256 characters. Absent if the record does not say. */
            by?: string;
            /**
             * @description Its holder released it, its time was over, an operator broke it, or the execution that held it ended.
             * @enum {string}
             */
            ended: "released" | "expired" | "broken" | "executionEnded";
            /**
             * Format: int64
             * @description The fencing token of that grant.
             */
            fence: number;
            /** @description Who had it, as that caller named itself. */
            holder: string;
        };
        /** @description An error of the service, RFC 9457. Each code has fields of its own. */
        Problem: {
            /**
             * @description What programs branch on.
             * @enum {string}
             */
            code: "InvalidRequest" | "Forbidden" | "NotFound" | "LeaseHeld" | "WrongKind" | "CommitInProgress" | "Conflict" | "AlreadyExists" | "LeaseLost" | "PreconditionFailed" | "FenceRejected" | "PayloadTooLarge" | "QueueFull" | "Throttled" | "Unavailable" | "OutcomeUnknown";
            /** @description What happened, in words. */
            detail: string;
            /**
             * Format: int64
             * @description The HTTP status.
             */
            status: number;
            /** @description What the code means, in words. */
            title: string;
            /** @description The id of the request, to look up in the logs. */
            traceId: string;
            /** @description A URN of the code. */
            type: string;
        };
        /** @description Raises the commit head of a ledger. A lower `t` is stale and changes nothing. */
        PublishCommit: {
            /** @description Where the commit or index is. */
            address: string;
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishCommit";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
            /**
             * Format: int64
             * @description Its watermark.
             */
            t: number;
        };
        /** @description What a publish came to. */
        Published: {
            /** @description `name:branch`. */
            alias: string;
            /** @description Whether this call created the alias. */
            created: boolean;
            current: components["schemas"]["Ledger"] | components["schemas"]["GraphSource"] | components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["Retracted"];
            /**
             * @description `stale`: something newer stands there, and nothing was written.
             * @enum {string}
             */
            outcome: "updated" | "stale";
            /** @description Whether an earlier try of this call had landed. */
            repeated: boolean;
        };
        /** @description Creates a graph source, or replaces its definition. */
        PublishGraphSource: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description Its config: any JSON up to 4 KiB, or a string that is JSON. */
            config: unknown;
            /** @description The aliases that it is made from. */
            dependencies: string[];
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishGraphSource";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
            /** @description What kind of graph source it is. */
            sourceType: string;
        };
        /** @description Raises the index of a graph source. */
        PublishGraphSourceIndex: {
            /** @description Where the commit or index is. */
            address: string;
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishGraphSourceIndex";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
            /**
             * Format: int64
             * @description Its watermark.
             */
            t: number;
        };
        /** @description Raises the index of a ledger. */
        PublishIndex: {
            /** @description Where the commit or index is. */
            address: string;
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description Whether an index at the same `t` is replaced.
             * @default false
             */
            allowEqual?: boolean;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishIndex";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
            /**
             * Format: int64
             * @description Its watermark.
             */
            t: number;
        };
        /** @description Every write of the nameservice, by `op`. */
        PublishRequest: components["schemas"]["InitLedger"] | components["schemas"]["PublishCommit"] | components["schemas"]["PublishIndex"] | components["schemas"]["Retract"] | components["schemas"]["CompareAndSetRef"] | components["schemas"]["FastForwardCommit"] | components["schemas"]["PushStatus"] | components["schemas"]["PushConfig"] | components["schemas"]["PublishGraphSource"] | components["schemas"]["PublishGraphSourceIndex"] | components["schemas"]["RetractGraphSource"];
        /** @description Deletes all items of a retracted alias. */
        Purge: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What the caller saw, and what must still stand there. Null where items stand under the alias that make no record. */
            expected: {
                /** @description The commit ref of a ledger. */
                commit?: {
                    /** @description Where the commit or index is. */
                    address: string | null;
                    /**
                     * Format: int64
                     * @description Its watermark.
                     */
                    t: number;
                };
                /** @description The config. */
                config: {
                    /**
                     * Format: int64
                     * @description The version.
                     */
                    v: number;
                };
                /** @description The index ref. */
                index: {
                    /** @description Where the commit or index is. */
                    address: string | null;
                    /**
                     * Format: int64
                     * @description Its watermark.
                     */
                    t: number;
                };
                /**
                 * @description The kind of the alias.
                 * @enum {string}
                 */
                kind: "ledger" | "graph_source";
                /** @description The status. */
                status: {
                    /** @description One word for the state. */
                    state: string;
                    /**
                     * Format: int64
                     * @description The version.
                     */
                    v: number;
                };
            } | null;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "purge";
            /** @description Names one purge, so that a retry within ten minutes finds it. It has no effect on the other operations. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description Sets the config of a ledger where its version is as expected. */
        PushConfig: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What must stand there. */
            expected: {
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description What to set it to. The version must rise. */
            next: {
                /** @description The content. Null empties the config. */
                payload: {
                    /** @description Where the default context of the ledger is. */
                    defaultContextAddress?: string;
                    /** @description Any JSON object up to 4 KiB. */
                    extra?: {
                        [key: string]: unknown;
                    };
                } | null;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "pushConfig";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description Sets the status where state and version are as expected. */
        PushStatus: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What must stand there. */
            expected: {
                /** @description One word for the state. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description What to set it to. The version must rise. */
            next: {
                /** @description Any JSON object up to 4 KiB. */
                extra?: {
                    [key: string]: unknown;
                };
                /** @description One word for the state. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "pushStatus";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description Too many tasks and callers wait. */
        QueueFull: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "QueueFull";
            /** @description The key. */
            key: string;
            /**
             * Format: int64
             * @description Its value.
             */
            limit: number;
            /**
             * @description The parameter of the deployment that limits them.
             * @enum {string}
             */
            quota: "maxWaitersPerKey" | "maxWaitersPerNamespace";
            /**
             * Format: int64
             * @description After how many milliseconds a retry may succeed.
             */
            retryAfterMs: number;
            /** @enum {integer} */
            status: 429;
            /** @enum {string} */
            type: "urn:holdfast:error:QueueFull";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "QueueFull";
        };
        /** @description A page of records. It may be empty and still have a cursor. */
        RecordPage: {
            /** @description Passed as `cursor`, it gets the next page. Null on the last page. */
            nextCursor: string | null;
            /** @description By kind, and then by alias. */
            records: components["schemas"]["NameserviceRecord"][];
        };
        /** @description The lease is free, or the next in the queue holds it. */
        Released: {
            /** @description The name of the resource. */
            key: string;
            /** @constant */
            released: true;
        };
        /** @description Gives a lease back. */
        ReleaseRequest: {
            /** @description The name of the resource: any text up to 1,024 bytes of UTF-8. */
            key: string;
            /** @description The `leaseId` of the grant. */
            leaseId: string;
        };
        /** @description What a repair came to. */
        Repaired: {
            /** @description `name:branch`. */
            alias: string;
            current: components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["Unretracted"] | null;
            /**
             * @description The operation.
             * @enum {string}
             */
            op: "resetRef" | "resetStatus" | "resetConfig" | "unretract" | "purge";
            /** @description Whether an earlier try of this call had landed. */
            repeated: boolean;
        };
        /** @description What publishing cannot do, by `op`. */
        RepairRequest: components["schemas"]["ResetRef"] | components["schemas"]["ResetStatus"] | components["schemas"]["ResetConfig"] | components["schemas"]["Unretract"] | components["schemas"]["Purge"];
        /** @description A report, complete or stopped. */
        Report: {
            /** @description Whether the event bus has the event of every complete report. */
            announced: boolean;
            /** @description Whether everything was scanned. In a namespace also whether all rows of the report were counted. */
            complete: boolean;
            expired: components["schemas"]["ExpiredTallies"];
            /**
             * Format: date-time
             * @description When it was complete. Null until then.
             */
            finishedAt: string | null;
            /** @description How many leases and permits the namespaces hold that hold the most, at most a hundred. In a namespace its own. */
            heldByNamespace: components["schemas"]["HeldLeases"][];
            /** @description Where the rows are, as newline-delimited JSON. */
            location: string;
            /**
             * Format: int64
             * @description How many of the expired rows the TTL of DynamoDB can never delete.
             */
            neverDeletable: number;
            /**
             * Format: double
             * @description What DynamoDB charged for it, in read units.
             */
            readUnits: number;
            /** @description Names the report. */
            reportId: string;
            /**
             * Format: int64
             * @description How many rows and objects it looked at.
             */
            scanned: number;
            /**
             * Format: date-time
             * @description When the report began. It may have gone on over several runs.
             */
            startedAt: string;
            /**
             * @description Why it is not complete. The next run goes on with it, unless `finishedAt` says that only the count of a namespace is cut short. Null where it is.
             * @enum {string|null}
             */
            stoppedBy: "time" | "Throttled" | null;
        };
        /** @description A report with a page of its rows. A page of one kind may be empty and still have a cursor. */
        ReportPage: {
            /** @description Whether everything was scanned. In a namespace also whether all rows of the report were counted. */
            complete: boolean;
            expired: components["schemas"]["ExpiredTallies"];
            /**
             * Format: date-time
             * @description When it was complete. Null until then.
             */
            finishedAt: string | null;
            /** @description How many leases and permits the namespaces hold that hold the most, at most a hundred. In a namespace its own. */
            heldByNamespace: components["schemas"]["HeldLeases"][];
            /** @description Where the rows are, as newline-delimited JSON. */
            location: string;
            /**
             * Format: int64
             * @description How many of the expired rows the TTL of DynamoDB can never delete.
             */
            neverDeletable: number;
            /** @description Passed as `cursor`, it goes on from here. Null at the end. */
            nextCursor: string | null;
            /**
             * Format: double
             * @description What DynamoDB charged for it, in read units.
             */
            readUnits: number;
            /** @description Names the report. */
            reportId: string;
            /** @description In the order in which they were found. */
            rows: components["schemas"]["ExpiredRecord"][];
            /**
             * Format: int64
             * @description How many rows and objects it looked at.
             */
            scanned: number;
            /**
             * Format: date-time
             * @description When the report began. It may have gone on over several runs.
             */
            startedAt: string;
        };
        /** @description Reports what has expired. It takes no fields. */
        ReportRequest: Record<string, never>;
        /** @description Sets the config of a ledger to the same version or a lower one. */
        ResetConfig: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What the caller saw, and what must still stand there. */
            expected: {
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description What to set it to. The version must not rise. */
            next: {
                /** @description The content. Null empties the config. */
                payload: {
                    /** @description Where the default context of the ledger is. */
                    defaultContextAddress?: string;
                    /** @description Any JSON object up to 4 KiB. */
                    extra?: {
                        [key: string]: unknown;
                    };
                } | null;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "resetConfig";
            /** @description Names one purge, so that a retry within ten minutes finds it. It has no effect on the other operations. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description Replaces or lifts the fence of an object that an administrator has seen. */
        ResetFenceRequest: {
            /** @description Names this reset, so that a repeat is answered with what became of it. Without `=?`. */
            commitId?: string;
            /** @description Exactly this must be the fence of the object. */
            expectedFence: {
                /** @description The key of the lease. */
                key: string;
                /**
                 * Format: int64
                 * @description The highest token that has written the object.
                 */
                token: number;
            };
            /** @description What commits must carry from then on. Null lifts the fence. */
            fence: {
                /** @description The key of the lease. */
                key: string;
                /**
                 * Format: int64
                 * @description The lowest token that may write the object. At most a day ahead of the clock in milliseconds.
                 */
                token: number;
            } | null;
            /** @description Exactly this ETag must be there. */
            ifMatch: string;
            /** @description The key of the object: 1 to 1,024 bytes of UTF-8, with no empty segment, no segment '.' or '..', and not under .holdfast/. */
            path: string;
            /**
             * @description How long to wait for the commit record of another client, in seconds.
             * @default 0
             */
            waitSeconds?: number;
        };
        /** @description Sets a ref to the same `t` or a lower one. */
        ResetRef: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What the caller saw, and what must still stand there. */
            expected: {
                /** @description Where the commit or index is. */
                address: string | null;
                /**
                 * Format: int64
                 * @description Its watermark.
                 */
                t: number;
            };
            /** @description What to set it to. The address is null, and `t` is 0, for a ref that points to nothing. */
            next: {
                /** @description Where the commit or index is. */
                address: string | null;
                /**
                 * Format: int64
                 * @description Its watermark.
                 */
                t: number;
            };
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "resetRef";
            /**
             * @description Which of the two pointers.
             * @enum {string}
             */
            ref: "commit" | "index";
            /** @description Names one purge, so that a retry within ten minutes finds it. It has no effect on the other operations. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description Sets the status to the same version or a lower one. */
        ResetStatus: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What the caller saw, and what must still stand there. */
            expected: {
                /** @description One word for the state. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description What to set it to. The version must not rise. */
            next: {
                /** @description Any JSON object up to 4 KiB. */
                extra?: {
                    [key: string]: unknown;
                };
                /** @description One word for the state. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "resetStatus";
            /** @description Names one purge, so that a retry within ten minutes finds it. It has no effect on the other operations. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description Retires a ledger. It stays visible. */
        Retract: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "retract";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description The ledger or graph source is retired. */
        Retracted: {
            /** @constant */
            retracted: true;
        };
        /** @description Retires a graph source. */
        RetractGraphSource: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "retractGraphSource";
            /** @description Names one creation, so that a retry finds it instead of a conflict. It has no effect where nothing is created. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description Whether a ledger or graph source is retired. */
        Retraction: {
            /** @description Whether it is. */
            retracted: boolean;
        };
        /** @description What stands under an alias, as far as a purge expects it. */
        SeenRecord: {
            commit?: components["schemas"]["Pointer"];
            config: {
                /**
                 * Format: int64
                 * @description Its version.
                 */
                v: number;
            };
            index: components["schemas"]["Pointer"];
            /**
             * @description The kind of the alias.
             * @enum {string}
             */
            kind: "ledger" | "graph_source";
            /** @description Whether it is retired: only then it can be purged. */
            retracted: boolean;
            status: {
                /** @description For example `ready`. */
                state: string;
                /**
                 * Format: int64
                 * @description Its version.
                 */
                v: number;
            };
        };
        /** @description What was left alone. */
        Spared: {
            by: {
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                ageUnknown?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                changed?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                fenceAhead?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                gone?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                leftToQueue?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                neverDeletable?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                partOfRecord?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                tooYoung?: number;
                /**
                 * Format: int64
                 * @description How many for that reason.
                 */
                unrecognisable?: number;
            };
            /**
             * Format: int64
             * @description How many.
             */
            count: number;
            /** @description The first hundred. */
            records: components["schemas"]["CleanedRecord"][];
        };
        /** @description What a ledger or graph source is doing. */
        Status: {
            /** @description Whatever the writer added. */
            extra: {
                [key: string]: unknown;
            };
            /** @description For example `ready`. */
            state: string;
            /**
             * Format: int64
             * @description The version, which rises with every change.
             */
            v: number;
        };
        /** @description What is at a path. All fields of the object are null where nothing is there. */
        StoredObject: {
            /** @description The commit that wrote the object. Null where another client wrote it. */
            commitId: string | null;
            /** @description The media type. */
            contentType: string | null;
            /** @description With its quotes. */
            etag: string | null;
            fence: components["schemas"]["Fence"] | null;
            inFlight: components["schemas"]["CommitInFlight"] | null;
            /** @description What callers put on the object. */
            metadata: {
                [key: string]: string;
            } | null;
            /** @description The key of the object in the bucket. */
            path: string;
            /**
             * Format: int64
             * @description In bytes.
             */
            size: number | null;
            /** @description In a bucket that keeps versions. */
            versionId: string | null;
        };
        /** @description The store is throttling requests. */
        Throttled: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "Throttled";
            /**
             * Format: int64
             * @description After how many milliseconds a retry may succeed.
             */
            retryAfterMs: number;
            /** @description Of a call that stood in line: what to add to the same call, which finds what it was granted meanwhile, or keeps the place. */
            retryWith?: {
                [key: string]: string;
            };
            /** @enum {integer} */
            status: 429;
            /** @enum {string} */
            type: "urn:holdfast:error:Throttled";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "Throttled";
        };
        /** @description A dependency is unavailable. */
        Unavailable: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "Unavailable";
            /** @description The key. */
            key?: string;
            /**
             * Format: int64
             * @description After how many milliseconds a retry may succeed.
             */
            retryAfterMs?: number;
            /** @description Of a call that stood in line: what to add to the same call, which finds what it was granted meanwhile, or keeps the place. */
            retryWith?: {
                [key: string]: string;
            };
            /** @enum {integer} */
            status: 503;
            /** @enum {string} */
            type: "urn:holdfast:error:Unavailable";
        };
        /** @description Takes a retraction back. */
        Unretract: {
            /** @description `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description What the caller saw, and what must still stand there. */
            expected: {
                /**
                 * @description The kind of the alias.
                 * @enum {string}
                 */
                kind: "ledger" | "graph_source";
            };
            /**
             * @description What to do. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "unretract";
            /** @description Names one purge, so that a retry within ten minutes finds it. It has no effect on the other operations. Up to 256 bytes of UTF-8. */
            requestId?: string;
        };
        /** @description The ledger or graph source is in use again. */
        Unretracted: {
            /** @constant */
            retracted: false;
        };
        /** @description Where to put what a commit then names as its source. */
        Upload: {
            /**
             * Format: date-time
             * @description When the URL ends. An upload under way then goes on.
             */
            expiresAt: string;
            /** @description To send along. They are part of the signature. */
            headers: {
                [key: string]: string;
            };
            /**
             * @description How to send them.
             * @constant
             */
            method: "PUT";
            /** @description Names the upload as the `source` of a commit. */
            uploadId: string;
            /** @description Where to send the bytes. It is signed. */
            url: string;
        };
        /** @description Reserves a place for an upload. */
        UploadRequest: {
            /** @description The media type. It becomes part of the signature. */
            contentType?: string;
            /**
             * Format: int64
             * @description How many bytes it will have. It becomes part of the signature.
             */
            sizeBytes?: number;
        };
        /** @description A task or a call in line for a lease. */
        Waiter: {
            /**
             * Format: date-time
             * @description When its wait ends with LeaseHeld. Of a caller: the wait of the present call. The client asks again then for as long as its own caller wants to wait, so the deadline of a caller does not say when it gives up.
             */
            deadline: string;
            /** @description The ARN of the execution that would hold the lease. */
            execution: string | null;
            /** @description Who waits. */
            holder: string;
            /**
             * @description A parked task, or a call of `acquire` that waits.
             * @enum {string}
             */
            kind: "task" | "caller";
            /**
             * Format: date-time
             * @description Since when it waits. A caller that asks again in time keeps its ticket, and so this instant.
             */
            parkedAt: string;
            /** @description Its place in the queue. Tickets sort by age. */
            ticket: string;
        };
        /** @description How the service knows its caller. */
        Whoami: {
            /**
             * @description What let the caller in: IAM, a JWT, the permission to invoke the function, or nothing (`npm start`).
             * @enum {string}
             */
            authorizedBy: "iam" | "jwt" | "lambda" | "nobody";
            /** @description Every call of the API. */
            calls: components["schemas"]["MayCall"][];
            /** @description The namespaces that the caller may name: those of its token. Null where only IAM knows. */
            namespaces: string[] | null;
            /** @description The ARN that IAM gives the caller, or the subject of its token. Null where there is none. */
            principal: string | null;
            /** @description The version of the deployment. */
            version: string;
        };
        /** @description No call of the request that was in line holds the lease any more. */
        Withdrawn: {
            /** @constant */
            cancelled: true;
            /** @description The name of the resource. */
            key: string;
            /** @description The request. */
            requestId: string;
        };
        /** @description Withdraws a call that waits for a lease or a permit, or what it got. */
        WithdrawRequest: {
            /** @description The `holder` of the acquisition, as it was sent to `acquire`. */
            holder: string;
            /** @description The name of the resource: any text up to 1,024 bytes of UTF-8. */
            key: string;
            /** @description The `requestId` of the acquisition, as it was sent to `acquire`. */
            requestId: string;
            /** @description The place of the call in line, from `retryWith`: withdraws that place without a read of the whole line, and what it got. Leave `ticket` out if a response to another call of the request was lost, because that call may have a place too. */
            ticket?: string;
        };
        /** @description The key is used as the other kind. */
        WrongKind: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "WrongKind";
            /**
             * Format: date-time
             * @description When that grant ends, unless its holder extends it.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token of that grant.
             */
            fence: number | null;
            /** @description The holder whose grant ends first. Null if the record does not say. */
            holder: string | null;
            /** @description Of a pool: the holders whose permits end first, up to ten, and expired permits last. */
            holders?: components["schemas"]["PermitHolder"][];
            /** @description The key. */
            key: string;
            /**
             * @description The kind of the key.
             * @enum {string}
             */
            kind: "lease" | "pool";
            /**
             * Format: int64
             * @description The limit that the last grant of a pool named. Null if no grant has named a limit.
             */
            limit?: number | null;
            /**
             * Format: int64
             * @description After how many milliseconds a retry may succeed.
             */
            retryAfterMs: number;
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:WrongKind";
            /**
             * Format: int64
             * @description The total weight of all holders of a pool.
             */
            used?: number;
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "WrongKind";
        };
    };
    responses: {
        /** @description The caller may not do this. The caller has no permission for this route. */
        Forbidden: {
            headers: {
                "Holdfast-Version": components["headers"]["Version"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GatewayRefusal"];
                "application/problem+json": components["schemas"]["Forbidden"];
            };
        };
        /** @description The URL and the headers are longer than API Gateway takes. */
        HeadersTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The request is not valid. */
        InvalidRequest: {
            headers: {
                "Holdfast-Version": components["headers"]["Version"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["InvalidRequest"];
            };
        };
        /** @description The function could not be run. */
        NoFunction: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GatewayRefusal"];
            };
        };
        /** @description The store is throttling requests. The API throttles requests. */
        Throttled: {
            headers: {
                "Holdfast-Version": components["headers"]["Version"];
                /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GatewayRefusal"];
                "application/problem+json": components["schemas"]["Throttled"];
            };
        };
        /** @description The body is too large. The request is larger than API Gateway or Lambda takes. */
        TooLarge: {
            headers: {
                "Holdfast-Version": components["headers"]["Version"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GatewayRefusal"];
                "application/problem+json": components["schemas"]["PayloadTooLarge"];
            };
        };
        /** @description The request carries no token, or one that is not valid. */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GatewayRefusal"];
            };
        };
        /** @description A dependency is unavailable. The function took longer than the API waits, or could not be reached. */
        Unavailable: {
            headers: {
                "Holdfast-Version": components["headers"]["Version"];
                /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GatewayRefusal"];
                "application/problem+json": components["schemas"]["Unavailable"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The version of the deployment. The gateway gives its own answers without it. */
        Version: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    readContract: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    readCommit: {
        parameters: {
            query: {
                /**
                 * @description The key of the object: 1 to 1,024 bytes of UTF-8, with no empty segment, no segment '.' or '..', and not under .holdfast/.
                 * @example log/00042.json
                 */
                path: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is there. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredObject"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    commit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CommitRequest"];
            };
        };
        responses: {
            /** @description The commit had landed before. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Commit"];
                };
            };
            /** @description The commit has landed. */
            201: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Commit"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such record. */
            404: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["NotFound"];
                };
            };
            /** @description Another writer is committing to the path. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["CommitInProgress"];
                };
            };
            /** @description The object is not in the expected state. The object belongs to a newer holder of the fence. */
            412: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["PreconditionFailed"] | components["schemas"]["FenceRejected"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    readInFlight: {
        parameters: {
            query?: {
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description How many to list. 100 where it is not given. */
                limit?: number;
                /**
                 * @description Only paths that begin so.
                 * @example log/
                 */
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of them. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InFlightPage"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    resetFence: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResetFenceRequest"];
            };
        };
        responses: {
            /** @description The fence is replaced. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Commit"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description Another writer is committing to the path. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["CommitInProgress"];
                };
            };
            /** @description The object is not in the expected state. */
            412: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["PreconditionFailed"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    readExpired: {
        parameters: {
            query?: {
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /**
                 * @description Only records of this kind.
                 * @example abandonedLease
                 */
                kind?: "abandonedLease" | "releasedLease" | "abandonedPermit" | "emptyPool" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow";
                /** @description How many to list. 100 where it is not given. */
                limit?: number;
                /** @description The report. The last complete one where it is not given. */
                reportId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The summary and a page of rows. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportPage"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such record. */
            404: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["NotFound"];
                };
            };
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    clean: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CleanRequest"];
            };
        };
        responses: {
            /** @description What was deleted and what was spared. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CleanUp"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such record. */
            404: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["NotFound"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    report: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReportRequest"];
            };
        };
        responses: {
            /** @description A report that stopped in time; the next call goes on with it. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            /** @description A complete report. */
            201: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description Someone else holds the lease. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["LeaseHeld"];
                };
            };
            /** @description The lease is no longer yours. */
            412: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["LeaseLost"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    readHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It answers. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    readLeases: {
        parameters: {
            query?: {
                /** @description The `nextCursor` of the page before. Not with `key`. */
                cursor?: string;
                /** @description Only keys of this holder. The row of a pool then shows a permit of this holder. Not with `key`. */
                holder?: string;
                /**
                 * @description The name of the resource: any text up to 1,024 bytes of UTF-8. Without a key the answer is a page of all keys.
                 * @example nightly-report
                 */
                key?: string;
                /** @description Only keys of this kind. Not with `key`. */
                kind?: "lease" | "pool";
                /** @description How many to list. 100 where it is not given. With `key`: of those in line, and only with `waiters`. */
                limit?: number;
                /** @description Only keys that begin so. Not with `key`. */
                prefix?: string;
                /** @description Sorts by key, by the expiry that comes first (`expiry`), by the holder that has had its key for the longest time (`held`), or by the longest line (`waiting`). Each page then costs a read of the whole table. Not with `key`. */
                sort?: "key" | "expiry" | "held" | "waiting";
                /** @description Only keys in this state. A pool is held while at least one permit has time left. `active`: keys that have a holder, expired or not, or a line. Not with `key`. */
                state?: "held" | "expired" | "released" | "free" | "active";
                /** @description With `key`: whether to list the tasks and callers in line for it, the oldest first. */
                waiters?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lease, the pool, or the page. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeaseWithQueue"] | components["schemas"]["KeyPage"] | components["schemas"]["Pool"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    acquire: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AcquireRequest"];
            };
        };
        responses: {
            /** @description The caller holds the lease by an earlier try of this request. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcquiredGrant"];
                };
            };
            /** @description The caller holds the lease, or its task is parked. */
            201: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcquiredGrant"] | components["schemas"]["Parked"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description Someone else holds the lease. The key is used as the other kind. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["LeaseHeld"] | components["schemas"]["WrongKind"];
                };
            };
            /** @description The lease is no longer yours. */
            412: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["LeaseLost"];
                };
            };
            413: components["responses"]["TooLarge"];
            /** @description The store is throttling requests. Too many tasks and callers wait. The API throttles requests. */
            429: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GatewayRefusal"];
                    "application/problem+json": components["schemas"]["Throttled"] | components["schemas"]["QueueFull"];
                };
            };
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    breakLease: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BreakRequest"];
            };
        };
        responses: {
            /** @description The lease or the permit has ended, or is ending. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Broken"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such record. */
            404: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["NotFound"];
                };
            };
            /** @description The record is not in the expected state. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Conflict"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    cancelWaiter: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CancelRequest"];
            };
        };
        responses: {
            /** @description Whether it waited. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cancelled"] | components["schemas"]["NotCancelled"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    heartbeat: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HeartbeatRequest"];
            };
        };
        responses: {
            /** @description The caller still holds the lease. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Grant"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The lease is no longer yours. */
            412: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["LeaseLost"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    release: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReleaseRequest"];
            };
        };
        responses: {
            /** @description Whether the caller held the lease. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Released"] | components["schemas"]["NotReleased"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    withdraw: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WithdrawRequest"];
            };
        };
        responses: {
            /** @description Whether there was something to withdraw. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Withdrawn"] | components["schemas"]["NotWithdrawn"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    readNames: {
        parameters: {
            query?: {
                /**
                 * @description `name:branch`, or a name alone for its branch `main`. Without it the answer is a page of all records.
                 * @example books
                 */
                alias?: string;
                /** @description The `nextCursor` of the page before. Not with `alias`. */
                cursor?: string;
                /** @description Only records of this kind. Not with `alias`. */
                kind?: "ledger" | "graph_source";
                /** @description How many to list. 100 where it is not given. Not with `alias`. */
                limit?: number;
                /** @description Only aliases that begin so. Not with `alias`. */
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, or the page. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NameserviceRecord"] | components["schemas"]["RecordPage"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such record. */
            404: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["NotFound"];
                };
            };
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    publish: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PublishRequest"];
            };
        };
        responses: {
            /** @description What stands under the alias now. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Published"];
                };
            };
            /** @description The alias exists now. */
            201: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Published"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such record. */
            404: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["NotFound"];
                };
            };
            /** @description The record is not in the expected state. The alias exists already. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Conflict"] | components["schemas"]["AlreadyExists"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    repairNames: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RepairRequest"];
            };
        };
        responses: {
            /** @description The repair took effect. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Repaired"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such record. */
            404: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["NotFound"];
                };
            };
            /** @description The record is not in the expected state. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Conflict"];
                };
            };
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
            /** @description The outcome of the write is unknown. */
            504: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["OutcomeUnknown"];
                };
            };
        };
    };
    stageUpload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UploadRequest"];
            };
        };
        responses: {
            /** @description Where to upload. */
            201: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upload"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["TooLarge"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
    whoami: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Whoami"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["Throttled"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["NoFunction"];
            503: components["responses"]["Unavailable"];
        };
    };
}
