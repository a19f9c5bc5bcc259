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
         * Read the OpenAPI document
         * @description Returns the API of the deployed version as an OpenAPI 3.1 document. The answer may be cached.
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
         * Read an object and its commits
         * @description Reads the ETag, the metadata and the fence of an object, and whether a commit is under way.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/commits`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readCommit"];
        put?: never;
        /**
         * Commit an object
         * @description Creates an object, or replaces the object that has the expected ETag. If several callers create an object at the same path, or replace the same ETag, only one of them wins. A retry with the same `commitId` receives the outcome of the first try.
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
         * List commits in flight
         * @description Lists commits that have begun and have not replaced the object yet. The call scans the commit records, and reads the object of each recent one. With `commitProtocol=native` Holdfast does not write records, so the list shows only commits of third-party clients.
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
         * Replace or lift a fence
         * @description For an administrator who has read the ETag and the fence of an object. The bytes stay, but the ETag changes. After a reset, the object must be committed to before its fence can be reset again.
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
         * Read a report
         * @description Reads the last complete report, or the report with the given id, page by page.
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
         * Delete expired records
         * @description Deletes reported records that have not changed since the report. By default the call only says what it would delete.
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
         * @description Scans the tables and the bucket for expired records, and writes a report. The records stay as they are. The schedule makes the same call.
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
         * Check the health
         * @description Shows that the gateway, the authorizer and a function answer. The call does not read the tables or the bucket: to check those, acquire and release a lease. The caller needs a signature or a token, as on every route.
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
         * Read a key, or list keys
         * @description With `key`, reads that key, its holders and its line. Without `key`, lists keys page by page. A page without `sort` costs 0.5 read units for each 4 KiB of records that it reads, and a page with `sort` reads the whole table. For the first few keys in an order, send `sort` and a small `limit`. To read all keys, leave out `sort` and sort the rows yourself.
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
         * Acquire a lease or a permit
         * @description Grants the key to the caller alone (a lease), or with `limit` or `mode` `shared` together with other holders (a permit). If there is no room, the call waits in line for up to `waitSeconds`, and then fails with `LeaseHeld`. With `taskToken` or `callbackId`, the call returns at once, and a Step Functions task or a durable function waits instead.
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
         * Break a lease or a permit
         * @description For an operator, when a holder is stuck: ends the grant with this fence, at once or, with `wait`, at its release or its expiry. The next heartbeat of the holder and a retry of its acquire fail with `LeaseLost` (`broken`). If the holder works on regardless, only a store that checks the fence refuses its writes.
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
         * Cancel a waiter
         * @description For an operator: takes the waiter with this ticket out of the line. Its task or call fails with `LeaseLost` (`cancelled`). A caller takes out its own request with `withdraw`.
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
    "/v1/leases/cap": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cap or pause a key
         * @description For an operator: limits the total weight of the holders of a key, or the starts at its rates, whatever limits the callers name. A `limit` of 0 pauses the key. Current holders keep their grants, and the line keeps its order. Callers that the cap keeps out see its reason. To lift a part of the cap, send null: the line is then served.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/cap`, or a JWT with the scope of the parameter `adminScope` and `breakScope`.
         */
        post: operations["capKey"];
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
         * Extend a lease or a permit
         * @description Extends the grant by its ttl, with the same fence. Call it well before the grant expires. A heartbeat also revives an expired grant, unless another grant has replaced it.
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
    "/v1/leases/next": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move a waiter to the front
         * @description For an operator: moves the waiter with this ticket to the front, so that it receives the next grant. Current holders keep their grants. Only one waiter of a key can be moved at a time, and the last call counts. No other waiter is served while the moved one does not fit or sleeps.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/leases/next`, or a JWT with the scope of the parameter `adminScope` and `breakScope`.
         */
        post: operations["runNext"];
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
         * Release a lease or a permit
         * @description Ends the grant, and gives the key to the next waiter. If the caller does not hold the grant, the call still succeeds, so a program can always release when it cleans up.
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
         * Withdraw a request
         * @description For a caller that stops waiting: takes its request out of the line, or ends its grant. The request id, the holder and the authenticated caller must be those of the acquisition. A call of the request that is still in line fails with `LeaseLost`. If the request had a grant, a retry also fails with `LeaseLost`: until the next grant of the key or, after a permit or a grant to a waiter, until eight more such grants have ended. A request that was withdrawn in line is not remembered, so a duplicate that arrives later may receive a grant: withdraw after the last try.
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
         * Read an alias, or list aliases
         * @description With `alias`, reads the record of that alias. Without `alias`, lists records page by page.
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
         * Publish
         * @description Creates an alias, or changes what it points to: `op` says how. A publish that arrives late is `stale`, and changes nothing.
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
         * Repair an alias
         * @description For an administrator: sets counters and flags back, or removes an alias. Each operation takes effect only if the alias still is as the caller saw it.
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
    "/v1/once": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a key of once, or list such keys
         * @description With `key`, reads who works for a slot of that key, which slot is done, and its result. Without `key`, lists keys page by page, without results. A page reads up to 1,000 records of the leases table.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/once`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readOnce"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/once/begin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin a slot
         * @description Lets one caller at a time work for a slot of a key. When the slot is done, every caller receives the stored result instead. While you work, extend the grant with `heartbeat`. Then call `complete`, or `release` if the work has failed: the next caller then begins the same slot.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/once/begin`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["onceBegin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/once/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Complete a slot
         * @description Stores the result of the slot and ends the grant. If the caller no longer holds the grant, the result is not stored, and `completed` is false.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/once/complete`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["onceComplete"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/once/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Forget a slot
         * @description For an operator: forgets the slot that is done and its result, so that the next caller does the work again.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/once/forget`, or a JWT with the scope of the parameter `adminScope` and `breakScope`.
         */
        post: operations["onceForget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the rates of a key, or list such keys
         * @description With `key`, reads until when its rates are used up. Without `key`, lists keys page by page. A page reads up to 1,000 records of the leases table.
         *
         *     Permission: `execute-api:Invoke` on `GET/v1/rates`, or a JWT with the scope of the parameter `adminScope`.
         */
        get: operations["readRates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rates/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Forget the reservations of a key
         * @description For an operator: forgets all reservations of a key, so that the next caller starts at once. Callers that already have a start keep it, so more may start than the rates allow.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/rates/forget`, or a JWT with the scope of the parameter `adminScope` and `breakScope`.
         */
        post: operations["rateForget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rates/reserve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reserve a start at a rate
         * @description Reserves a start for your work, so that no more units start in a period than the rates allow. The call answers at once: sleep until `startAt`, then begin. Starts are given in the order of the calls.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/rates/reserve`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["rateReserve"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rates/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Settle or cancel a reservation
         * @description Corrects the charge of a reservation to the units that the work really took, or cancels the reservation. A repeat changes nothing.
         *
         *     Permission: `execute-api:Invoke` on `POST/v1/rates/settle`, or a JWT with the scope of the parameter `adminScope`.
         */
        post: operations["rateSettle"];
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
         * Stage an upload
         * @description Returns a signed URL for the bytes of an object, such as one that is too large for `body`. A commit then names the `uploadId` as its `source`.
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
         * Read who the caller is, and what it may call
         * @description Returns the name of the authenticated caller, the version of the deployment, and for each call the permission that it needs and whether the caller has it. With IAM, `allowed` is null, because the service does not read IAM policies.
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
        /** @description The grant of the caller. Only a permit has `mode`, `limit`, `weight` and `used`. */
        AcquiredGrant: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted.
             */
            acquiredAt: string;
            /**
             * @description True if the grant lasts as long as its execution, without heartbeats. Absent otherwise.
             * @constant
             */
            bound?: true;
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. */
            data?: unknown;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder.
             */
            fence: number;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it. */
            leaseId: string;
            /**
             * Format: int64
             * @description The limit that this request names, or 200.
             */
            limit?: number | null;
            /** @description Present if the grant before named another limit: callers of the key may disagree about its limit. */
            limitChanged?: {
                /**
                 * Format: int64
                 * @description The limit that the grant before named.
                 */
                from: number;
                /**
                 * Format: int64
                 * @description The limit of this grant.
                 */
                to: number;
            };
            /**
             * @description How the key is held: together with other holders (`shared`), or alone (`exclusive`).
             * @enum {string}
             */
            mode?: "shared" | "exclusive";
            /** @description The holder before. If its grant has `expired`, or was `broken` or `superseded`, its work may be half done. For a shared grant, it is a holder whose room the grant takes. Null if there was no such holder, if it was a third-party client, or if the response to the first try was lost. */
            previous: components["schemas"]["PreviousHolder"] | null;
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says.
             */
            remainingMs: number;
            /** @description True if the request already had its grant, because the call is a retry or a response was lost. */
            repeated: boolean;
            /**
             * Format: int64
             * @description The total weight of all holders. Expired holders count until another caller needs their room. An exclusive holder counts 1.
             */
            used?: number;
            /** @description A UUID that changes with each heartbeat. It is a secret. */
            version: string;
            /**
             * Format: int64
             * @description From the arrival of the call to its answer, in milliseconds, or for a task from its parking to the message with its grant. On the clock of the caller, the grant lasts until `sentAt + waitedMs + remainingMs`, where `sentAt` is a moment before the call was sent.
             */
            waitedMs: number;
            /**
             * Format: int64
             * @description How much of the limit the grant takes. 1 for `exclusive`.
             */
            weight?: number;
        };
        /** @description Acquires a key for the caller alone (a lease), or with `limit` or `mode` `shared` together with other holders (a permit). With `taskToken` or `callbackId`, a Step Functions task or the callback of a durable function is parked until it receives the grant. */
        AcquireRequest: {
            /** @description If true, the grant lasts as long as `execution` runs, without heartbeats, and for `graceSeconds` after an abnormal end. Needs `execution`, and `taskToken` or `callbackId`. Not with `ttlSeconds`. */
            bound?: boolean;
            /** @description The id of a durable function's callback that waits instead of the call. In its turn, it completes with the grant as JSON, or fails with the problem in `ErrorData`. Without `requestId`, the request id is `c-` and the SHA-256 of the callback id in base64url. Not with `taskToken`, `waitSeconds`, `ticket` or `fair` false. Needs the `execution` of the durable function itself, and the parameter `durableFunctions`. */
            callbackId?: string;
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. Up to 4 KiB and 32 levels, or with `limit` or `mode` `shared` up to 256 bytes. */
            data?: unknown;
            /** @description The ARN of the execution that will hold the grant. When the execution ends, its grant is freed, or the execution leaves the line. It must belong to a Standard workflow, or to a durable function that the parameter `durableFunctions` names, in the account and region of the deployment. */
            execution?: string;
            /**
             * @description If false, the call polls the key outside the line, which suits short waits among few callers.
             * @default true
             */
            fair?: boolean;
            /** @description How long the grant stays after the execution or its target has ended with any status but SUCCEEDED, in seconds, but never beyond its expiry. Set it to the longest timeout of the functions that the execution calls, because they may still run. Needs `execution`. */
            graceSeconds?: number;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description Asks for a permit: the highest total weight of all holders, this one included. Without `limit`, the caller has the key alone, or with `mode` `shared` the limit is 200. Not with `mode` `exclusive`. */
            limit?: number;
            /**
             * @description How the key is held: together with other holders (`shared`), or alone (`exclusive`). The default is `shared` with `limit`, and `exclusive` without.
             * @enum {string}
             */
            mode?: "shared" | "exclusive";
            /** @description How long the task or the callback waits, in seconds. Then it fails with `LeaseHeld`, at most two minutes late. The default is 86,400, a day. Needs `taskToken` or `callbackId`. */
            parkSeconds?: number;
            /**
             * @description For work of which only the newest request counts: each older request that also said `replace` and still waits fails with `Superseded`. With `running`, a holder that said `running` is asked to stop too: its next heartbeat fails with `LeaseLost` (`superseded`), and this request is granted when that holder has released or has expired. Needs `waitSeconds`, `taskToken` or `callbackId`. Not with `limit`, `mode` `shared` or `fair` false.
             * @enum {string}
             */
            replace?: "waiting" | "running";
            /** @description The id of one acquisition. A retry with the same id, holder and authenticated caller receives the grant of the first try while that grant lasts. After the release it fails with `LeaseLost`, and after the expiry it receives a new grant. Use a new random UUID for each acquisition. */
            requestId?: string;
            /**
             * @description For long lines: how long the caller can stay away between two calls, in milliseconds. While its turn is far off, the call fails at once with `LeaseHeld`, and the caller sleeps for `comeBackMs`. Needs `waitSeconds`. Not with `fair` false, `taskToken` or `callbackId`.
             * @default 0
             */
            sleepMs?: number;
            /** @description The ARN of a second execution that works under the same grant. The grant stays while it runs, even if `execution` has ended. Needs `execution`. */
            target?: string;
            /** @description The token of a Step Functions task that waits instead of the call, and receives the grant in its turn. Not with `waitSeconds`, `ticket` or `fair` false. */
            taskToken?: string;
            /** @description The id of a waiter in the line. Tickets sort by arrival. To keep your position after `LeaseHeld`, send the ticket of `retryWith` within `keptMs`, with the other fields unchanged. Needs `requestId`. */
            ticket?: string;
            /**
             * @description How long the grant lasts without a heartbeat, in seconds. A crashed holder blocks the key for about this long. Not with `bound`.
             * @default 60
             */
            ttlSeconds?: number;
            /**
             * @description How long the call waits in line, in seconds. A deployment may allow less (`maxWaitSeconds`).
             * @default 0
             */
            waitSeconds?: number;
            /** @description How much of the limit the permit takes, at most `limit`. The default is 1. Needs `limit` or `mode` `shared`. */
            weight?: number;
        };
        /** @description The alias exists already. */
        AlreadyExists: components["schemas"]["Problem"] & {
            /** @description The alias, as `name:branch`. */
            alias: string;
            /** @enum {string} */
            code: "AlreadyExists";
            /**
             * @description The kind of the alias.
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
        /** @description Breaks the grant with the fence that the operator has read. */
        BreakRequest: {
            /**
             * Format: int64
             * @description The fence of the grant to end, as the operator has read it.
             */
            fence: number;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description If `once`, the call ends the grant of `POST /v1/once/begin` instead of a lease or a permit.
             * @enum {string}
             */
            kind?: "once";
            /** @description If true, the holder keeps the grant until its release or its expiry, but heartbeats no longer extend the grant. A grant under which no holder works, such as an expired one, still ends at once. If false, the grant ends at once, even though the holder may still work. */
            wait?: boolean;
        };
        /** @description The lease or the permit that an operator has broken. */
        Broken: {
            /**
             * @description The grant has ended, or is ending.
             * @constant
             */
            broken: true;
            /** @description True if the next caller can already have the key. False if the holder keeps it until its release, or until `holderUntil`. */
            ended: boolean;
            /**
             * Format: int64
             * @description The fence of the grant that was broken.
             */
            fence: number;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null if the record does not say. */
            holder: string | null;
            /**
             * Format: date-time
             * @description When the grant would have expired. The holder may work until then, unless its heartbeat fails earlier. Null if the record does not say, for example if you repeat the call after the permit has ended.
             */
            holderUntil: string | null;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: date-time
             * @description When the last heartbeat came. Null if there was none, or the record does not say.
             */
            lastHeartbeatAt: string | null;
        };
        /** @description The task or the call is out of the line, and fails with `LeaseLost`. */
        Cancelled: {
            /**
             * @description The waiter is out of the line.
             * @constant
             */
            cancelled: true;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The id of a waiter in the line. Tickets sort by arrival. */
            ticket: string;
        };
        /** @description Takes a waiter out of the line of a key. */
        CancelRequest: {
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The id of a waiter in the line. Tickets sort by arrival. Read the key with `waiters` to see it, or take it from the answer of `acquire`. */
            ticket: string;
        };
        /** @description What an operator allows for a key, whatever limit or rates the callers name. */
        Cap: {
            /** @description The operator: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator. */
            by: string | null;
            /**
             * Format: int64
             * @description The highest total weight of all holders. 0: the key is paused. Null if the cap has only rates. A request that is heavier than a cap above 0 is still granted, but alone.
             */
            limit: number | null;
            /** @description The rates that count for every reservation. Null if the cap has none. Null also where the lock shows the cap: read the rates of the key instead. */
            rates: components["schemas"]["NamedRate"][] | null;
            /** @description Why the key is capped, in the words of the operator. */
            reason: string;
            /**
             * Format: date-time
             * @description When the operator set the cap.
             */
            since: string;
            /**
             * Format: date-time
             * @description When the cap ends by itself. Null if it lasts until an operator lifts it.
             */
            until: string | null;
        };
        /** @description The cap of the key from now on. */
        Capped: {
            /** @description The cap before this call. Null if there was none. */
            before: components["schemas"]["Cap"] | null;
            /** @description The cap from now on. Null if the key has none. */
            cap: components["schemas"]["Cap"] | null;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: int64
             * @description The total weight of all holders. Expired holders count until another caller needs their room. An exclusive holder counts 1.
             */
            used: number;
            /**
             * Format: int64
             * @description How many tasks and calls are in line at most: the record still counts some that have left. Read the key for the exact number.
             */
            waiting: number;
        };
        /** @description Caps or pauses a key, or lifts the cap. */
        CapRequest: {
            /** @description After how many seconds the cap ends by itself, at most 31 days. Without it, the cap lasts until an operator lifts it. Not allowed if the call only lifts. */
            forSeconds?: number;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description If `once`, the call pauses `POST /v1/once/begin` of the key instead of its leases, permits and rates. Only with `limit` 0 or null, and without `rates`.
             * @enum {string}
             */
            kind?: "once";
            /** @description The highest total weight of all holders. 0 pauses the key: no caller is granted the key or a start at its rates. Null lifts this part of the cap. Without the field, this part stays as it is. */
            limit?: number | null;
            /** @description One to four rates with different names. They count for each reservation as if its caller had named them. Null lifts this part of the cap. Without the field, this part stays as it is. */
            rates?: {
                /** @description How many units may start in each period. */
                limit: number;
                /**
                 * @description The name of the rate.
                 * @default requests
                 */
                name?: string;
                /** @description The period: a number and `s`, `m`, `h` or `d`, at most 31 days. */
                per: string;
            }[] | null;
            /** @description Why the key is capped, shown to each caller that the cap keeps out. Required, unless the call only lifts. */
            reason?: string;
        } & ({
            limit: unknown;
        } | {
            rates: unknown;
        });
        /** @description A reported record that was deleted or spared. */
        CleanedRecord: {
            /**
             * Format: date-time
             * @description When the record expired. Null if the record does not say.
             */
            expiredAt: string | null;
            /** @description The holder or writer. Null if the record does not say. */
            holder: string | null;
            /** @description The key attributes of the record, the key of an object as `path`, or `key` and `fence` of a permit. */
            key: {
                [key: string]: string;
            };
            /**
             * @description The kind of the record.
             * @enum {string}
             */
            kind: "abandonedLease" | "releasedLease" | "abandonedPermit" | "holderEnded" | "holderUnknown" | "abandonedRun" | "endedRun" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow";
            /**
             * @description Why the record was spared.
             * @enum {string}
             */
            why?: "tooYoung" | "ageUnknown" | "neverDeletable" | "leftToQueue" | "partOfRecord" | "fenceAhead" | "unrecognisable" | "changed" | "gone";
        };
        /** @description Deletes reported records that have not changed since the report. */
        CleanRequest: {
            /** @description The `nextCursor` of the page before, to read the next page. */
            cursor?: string;
            /**
             * @description If true, the call deletes nothing, and answers what it would delete.
             * @default true
             */
            dryRun?: boolean;
            /** @description Only records of these kinds. */
            kinds?: ("abandonedLease" | "releasedLease" | "abandonedPermit" | "holderEnded" | "holderUnknown" | "abandonedRun" | "endedRun" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow")[];
            /**
             * @description If true, the call also deletes records that DynamoDB's TTL can never delete.
             * @default false
             */
            neverDeletable?: boolean;
            /**
             * Format: int64
             * @description Only records that expired at least this long ago, in seconds.
             * @default 3600
             */
            olderThanSeconds?: number;
            /** @description The id of the report. Without it, the last complete report. */
            reportId?: string;
        };
        /** @description What a clean-up has done, or with `dryRun` what it would do. */
        CleanUp: {
            deleted: components["schemas"]["Deleted"];
            /** @description If true, nothing was deleted, and `deleted` shows what a clean-up would try to delete. */
            dryRun: boolean;
            /** @description To read the next page, send it as `cursor`. Null on the last page. */
            nextCursor: string | null;
            /**
             * Format: double
             * @description The `olderThanSeconds` of the request, or the parameter `fenceRetentionSeconds` if that is longer.
             */
            olderThanSeconds: number;
            /** @description The id of the report. */
            reportId: string;
            spared: components["schemas"]["Spared"];
            /**
             * @description Why the clean-up stopped before the end of the report. Call again with `nextCursor`.
             * @enum {string|null}
             */
            stoppedBy: "time" | "Throttled" | "Unavailable" | "OutcomeUnknown" | null;
        };
        /** @description A commit that has taken effect. */
        Commit: {
            /** @description The id of one commit. If the request has none, the service chooses one. */
            commitId: string;
            /** @description The ETag of the object that is there now, if `etag` is null. */
            currentEtag?: string;
            /** @description The ETag of the committed object, with its quotes. Null if the object has been replaced since. */
            etag: string | null;
            /**
             * Format: int64
             * @description How often a commit has taken over the record of another one for the same precondition.
             */
            generation?: number;
            /** @description The key of the object in the bucket. */
            path: string;
            /**
             * @description The commit protocol of the deployment.
             * @enum {string}
             */
            protocol: "dynamo" | "native";
            /** @description True if an earlier try of this commit may be the one that took effect. */
            repeated: boolean;
            /**
             * Format: int64
             * @description The size in bytes. Null if `etag` is null.
             */
            size: number | null;
            /** @description The version of the object, if the bucket has versions. */
            versionId?: string;
        };
        /** @description A commit that has begun and has not replaced the object. Its writer may have exited. */
        CommitInFlight: {
            /** @description The id of one commit. Null for a third-party client. */
            commitId: string | null;
            /**
             * Format: int64
             * @description How often a commit has taken over the record of another one for the same precondition.
             */
            generation: number;
            /**
             * Format: int64
             * @description How long the writer may take, in milliseconds.
             */
            timeoutMs: number | null;
            /**
             * Format: date-time
             * @description When the commit began. Null for a third-party client.
             */
            writtenAt: string | null;
        };
        /** @description Another writer is committing to the path. */
        CommitInProgress: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "CommitInProgress";
            /**
             * Format: int64
             * @description How often a commit has taken over the record of another one for the same precondition.
             */
            generation: number;
            /** @description The key of the object in the bucket. */
            path: string;
            /**
             * Format: int64
             * @description When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.
             */
            retryAfterMs: number;
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:CommitInProgress";
        };
        /** @description Creates or replaces an object, if the object is in the state that the caller expects. Send either `ifNoneMatch` or `ifMatch`, and either `body` or `source`. */
        CommitRequest: {
            /** @description The content, up to 1 MiB: text, or with `encoding` `base64` the bytes in base64 with padding. For more, stage an upload. */
            body?: string;
            /** @description The Cache-Control header to store with the object. The header of the upload is not kept. */
            cacheControl?: string;
            /** @description The id of one commit, which makes retries safe: a retry with the same id, path, precondition and content receives the outcome of the first try. Without it, the service chooses one. Up to 64 printable ASCII characters without spaces and `=?`. */
            commitId?: string;
            /** @description The Content-Disposition header to store with the object. The header of the upload is not kept. */
            contentDisposition?: string;
            /** @description The Content-Encoding header to store with the object, but not aws-chunked, which S3 uses itself. The header of the upload is not kept. */
            contentEncoding?: string;
            /** @description The media type of the object. The default is that of the upload, or application/octet-stream. */
            contentType?: string;
            /**
             * @description How `body` is encoded. The default is utf8.
             * @enum {string}
             */
            encoding?: "utf8" | "base64";
            /** @description Ties the object to a lease, so that a former holder can no longer replace it: only commits with this key and a token at least as high can. */
            fence?: {
                /** @description The key of the lease. */
                key: string;
                /**
                 * Format: int64
                 * @description The `fence` of the grant. At most a day ahead of the current time in milliseconds since 1970.
                 */
                token: number;
            };
            /** @description Replaces the object that has this ETag. The commit fails if the object has another one. */
            ifMatch?: string;
            /**
             * @description Creates the object. The commit fails if there is an object at the path.
             * @enum {string}
             */
            ifNoneMatch?: "*";
            /** @description Your metadata of the object: at most 32 names in lower case, and 1 KiB in all. Names do not begin with `holdfast-`, and values are printable ASCII without `=?`. */
            metadata?: {
                [key: string]: string;
            };
            /** @description The key of the object in the bucket: 1 to 1,024 bytes of UTF-8, without empty segments and without the segments '.' and '..', and not under .holdfast/. */
            path: string;
            /** @description The `uploadId` of a staged upload, instead of a `body`. */
            source?: string;
            /** @description The ETag that S3 returned for the upload. The commit fails if the upload has another one. */
            sourceEtag?: string;
            /**
             * @description How long to wait for a commit of a third-party client, in seconds.
             * @default 0
             */
            waitSeconds?: number;
        } & ((unknown | unknown) & (unknown | unknown));
        /** @description Sets a ref, if it still is as expected. */
        CompareAndSetRef: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The ref that the alias must have. Null if the alias must not exist, and is created as a ledger. */
            expected: {
                /** @description Where the commit or the index is stored. */
                address: string | null;
                /**
                 * Format: int64
                 * @description The watermark: a whole number that only a repair lowers.
                 */
                t: number;
            } | null;
            /** @description The ref to set. */
            next: {
                /** @description Where the commit or the index is stored. */
                address: string;
                /**
                 * Format: int64
                 * @description The watermark: a whole number that only a repair lowers.
                 */
                t: number;
            };
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "compareAndSetRef";
            /**
             * @description The ref: the head of the commits, or of the index.
             * @enum {string}
             */
            ref: "commit" | "index";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
        };
        /** @description The record is not in the expected state. */
        Conflict: components["schemas"]["Problem"] & {
            /** @description What is there now: the key with a holder, or the value of the alias. Null if there is nothing. */
            actual: components["schemas"]["KeySummary"] | components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["SeenRecord"] | components["schemas"]["Retraction"] | components["schemas"]["RateKey"] | null;
            /** @description The alias, as `name:branch`. */
            alias?: string;
            /** @enum {string} */
            code: "Conflict";
            /**
             * @description The field of the request that is in conflict: the slot is done with another `inputHash`, or a slot is done that sorts after every period of `per`.
             * @enum {string}
             */
            field?: "inputHash" | "per";
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
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
        /** @description The records that were deleted, or would be. */
        Deleted: {
            /** @description The number of records, by kind. */
            by: {
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                abandonedLease?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                abandonedPermit?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                abandonedRun?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                commit?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                endedRun?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                firstSight?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                holderEnded?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                holderUnknown?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                nameserviceRow?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                releasedLease?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                upload?: number;
                /**
                 * Format: int64
                 * @description The number of records, by kind.
                 */
                waiter?: number;
            };
            /**
             * Format: int64
             * @description The number of records.
             */
            count: number;
            /** @description The first 100 records. */
            records: components["schemas"]["CleanedRecord"][];
        };
        /** @description The attributes by which the clean-up recognises the record. An attribute that the record lacks is null. */
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
             * @description For how long the record had been expired when the report read it, in seconds. 0 if `expiredAt` is null.
             */
            ageSeconds: number;
            /**
             * Format: date-time
             * @description When the record expired. Null if the record does not say.
             */
            expiredAt: string | null;
            /** @description The holder or writer. Null if the record does not say. */
            holder: string | null;
            /** @description The attributes by which the clean-up recognises the record. An attribute that the record lacks is null. */
            identity: components["schemas"]["ExpiredIdentity"] | null;
            /** @description The key attributes of the record, the key of an object as `path`, or `key` and `fence` of a permit. */
            key: {
                [key: string]: string;
            };
            /**
             * @description The kind of the record.
             * @enum {string}
             */
            kind: "abandonedLease" | "releasedLease" | "abandonedPermit" | "holderEnded" | "holderUnknown" | "abandonedRun" | "endedRun" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow";
            /** @description True if DynamoDB's TTL can never delete the row. */
            neverDeletable: boolean;
            /** @description Why the record is reported, for people. */
            reason: string;
            /**
             * @description Why the TTL cannot delete the row. Null if it can.
             * @enum {string|null}
             */
            ttlFault: "milliseconds" | "missing" | "notANumber" | "notATime" | "olderThanFiveYears" | null;
        };
        /** @description The expired records, by kind. */
        ExpiredTallies: {
            abandonedLease: components["schemas"]["ExpiredTally"];
            abandonedPermit: components["schemas"]["ExpiredTally"];
            abandonedRun: components["schemas"]["ExpiredTally"];
            commit: components["schemas"]["ExpiredTally"];
            endedRun: components["schemas"]["ExpiredTally"];
            firstSight: components["schemas"]["ExpiredTally"];
            holderEnded: components["schemas"]["ExpiredTally"];
            holderUnknown: components["schemas"]["ExpiredTally"];
            nameserviceRow: components["schemas"]["ExpiredTally"];
            releasedLease: components["schemas"]["ExpiredTally"];
            upload: components["schemas"]["ExpiredTally"];
            waiter: components["schemas"]["ExpiredTally"];
        };
        /** @description The expired records of a kind. */
        ExpiredTally: {
            /**
             * Format: int64
             * @description The number of records.
             */
            count: number;
            /**
             * Format: int64
             * @description The age of the oldest record, in seconds.
             */
            oldestAgeSeconds: number;
        };
        /** @description Raises the commit head to a higher `t`, and creates the ledger if it does not exist. */
        FastForwardCommit: {
            /** @description Where the commit or the index is stored. */
            address: string;
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description How often to retry if another caller creates the ledger at the same time.
             * @default 5
             */
            maxRetries?: number;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "fastForwardCommit";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
            /**
             * Format: int64
             * @description The watermark: a whole number that only a repair lowers.
             */
            t: number;
        };
        /** @description The fence of an object: only commits with this key and a token at least as high replace the object. */
        Fence: {
            /** @description The key of the lease. */
            key: string;
            /**
             * Format: int64
             * @description The highest token that has written the object.
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
            /** @description The key of the object in the bucket. */
            path: string;
            /** @enum {integer} */
            status: 412;
            /**
             * Format: int64
             * @description The token of this commit. Null if the commit has no fence.
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
            /** @description The claim or the scope that the caller lacks. */
            missing: string;
            /** @enum {integer} */
            status: 403;
            /** @enum {string} */
            type: "urn:holdfast:error:Forbidden";
        };
        /** @description Forgets all reservations of a key. */
        ForgetRateRequest: {
            /** @description The name of what the rate protects, such as an API: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. */
            key: string;
            /**
             * Format: date-time
             * @description The `paidUntil` that the operator has read.
             */
            paidUntil: string;
        };
        /** @description A holder of a key, as every reader sees it. */
        FullHolder: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted. Null if the record does not say.
             */
            acquiredAt: string | null;
            /** @description True if the grant lasts until its execution ends, without heartbeats. `expiresAt` is then 400 days after the grant. */
            bound: boolean;
            /**
             * Format: date-time
             * @description When an operator broke the grant. Null if no operator did, or the record does not say.
             */
            brokenAt: string | null;
            /** @description The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator. */
            brokenBy: string | null;
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none. */
            data: unknown;
            /** @description True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop. The holder keeps the grant until its release or its expiry. */
            ending: boolean;
            /** @description The ARN of the execution that holds the grant, or held it until the execution ended. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it. Null if the record does not say.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder. Null for a third-party client.
             */
            fence: number | null;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null for a third-party client. */
            holder: string | null;
            /** @description True if the execution has ended, but the holder may go on for `graceSeconds`, or for as long as it sends heartbeats. */
            inGrace: boolean;
            /**
             * @description How the key is held: together with other holders (`shared`), or alone (`exclusive`).
             * @enum {string}
             */
            mode: "shared" | "exclusive";
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says. Null if the record does not say.
             */
            remainingMs: number | null;
            /**
             * @description Whether the grant has expired. A heartbeat revives an expired grant, until another grant replaces it.
             * @enum {string}
             */
            state: "held" | "expired";
            /** @description The holder of the newer request that has asked this holder to stop. The grant is then `ending`. */
            supersededBy?: string;
            /**
             * Format: double
             * @description How long the grant lasts from each heartbeat, in seconds. Null if the record does not say.
             */
            ttlSeconds: number | null;
            /**
             * Format: int64
             * @description How much of the limit the grant takes. 1 for `exclusive`.
             */
            weight: number;
        };
        /** @description An answer of API Gateway itself. */
        GatewayRefusal: {
            /** @description What API Gateway says. */
            message: string;
        };
        /** @description A lease or a permit, as its holder sees it. */
        Grant: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted.
             */
            acquiredAt: string;
            /**
             * @description True if the grant lasts as long as its execution, without heartbeats. Absent otherwise.
             * @constant
             */
            bound?: true;
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. */
            data?: unknown;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder.
             */
            fence: number;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it. */
            leaseId: string;
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says.
             */
            remainingMs: number;
            /** @description A UUID that changes with each heartbeat. It is a secret. */
            version: string;
        };
        /** @description The record of a graph source. */
        GraphSource: {
            /** @description The alias, as `name:branch`. */
            alias: string;
            /** @description The part of the alias after the colon. */
            branch: string;
            config: components["schemas"]["GraphSourceConfig"];
            /** @description The aliases from which the graph source is made. */
            dependencies: string[];
            index: components["schemas"]["Pointer"];
            /**
             * @description The kind of the alias.
             * @constant
             */
            kind: "graph_source";
            /** @description Items of the record that are missing. The next write to such an item restores it. */
            missing?: ("config" | "head" | "index" | "meta" | "status")[];
            /** @description The part of the alias before the colon. */
            name: string;
            /**
             * @description Present if a third-party client made the record too large for an answer: long texts are cut, and `extra`, `dependencies` and the config are left out.
             * @constant
             */
            oversized?: true;
            /** @description True if the alias is retracted. A retracted alias stays visible. */
            retracted: boolean;
            /** @description The type of the graph source, such as `db:Bm25Index`. */
            sourceType: string;
            status: components["schemas"]["Status"];
            /**
             * Format: date-time
             * @description When an item of the record was last written.
             */
            updatedAt: string;
        };
        /** @description The config of a graph source. */
        GraphSourceConfig: {
            /**
             * Format: int64
             * @description The version, which rises with each publish.
             */
            v: number;
            /** @description The config. */
            value: unknown;
        };
        /** @description The health of the deployment. */
        Health: {
            /**
             * @description The deployment answers.
             * @enum {string}
             */
            status: "ok";
            /** @description The version of the deployment. */
            version: string;
        };
        /** @description Extends a lease or a permit. */
        HeartbeatRequest: {
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it. From the answer of `acquire`. */
            leaseId: string;
            /** @description How long the grant lasts from this heartbeat and from later ones, in seconds. Without it, as long as before. A heartbeat never shortens a grant. */
            ttlSeconds?: number;
        };
        /** @description The leases and permits that are held in a namespace. */
        HeldLeases: {
            /**
             * Format: int64
             * @description The number of leases and permits.
             */
            leases: number;
            /** @description The namespace. */
            namespace: string;
        };
        /** @description A holder of a key, in short. */
        Holder: {
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it. Null if the record does not say.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder. Null for a third-party client.
             */
            fence: number | null;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null for a third-party client. */
            holder: string | null;
            /**
             * @description How the key is held: together with other holders (`shared`), or alone (`exclusive`).
             * @enum {string}
             */
            mode: "shared" | "exclusive";
            /**
             * Format: int64
             * @description How much of the limit the grant takes. 1 for `exclusive`.
             */
            weight: number;
        };
        /** @description A page of commits in flight. A page may be empty and still have a cursor. */
        InFlightPage: {
            /** @description The commits, in no particular order. */
            commits: components["schemas"]["PathInFlight"][];
            /** @description To read the next page, send it as `cursor`. Null on the last page. */
            nextCursor: string | null;
            /**
             * @description The commit protocol of the deployment.
             * @enum {string}
             */
            protocol: "dynamo" | "native";
        };
        /** @description Creates a ledger. */
        InitLedger: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "initLedger";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
        };
        /** @description The request is not valid. */
        InvalidRequest: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "InvalidRequest";
            /** @description The faults, up to twenty. */
            issues: components["schemas"]["Issue"][];
            /** @enum {integer} */
            status: 400;
            /** @enum {string} */
            type: "urn:holdfast:error:InvalidRequest";
        };
        /** @description One fault of a request. */
        Issue: {
            /** @description What is wrong with the field. */
            message: string;
            /** @description The field, as a path with dots into the request. Or the part of the HTTP request. */
            path: string;
        };
        /** @description A key with all its holders and its line. From `state` to `data`, the fields are those of one holder, as in `KeySummary`. */
        Key: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted. Null if the record does not say.
             */
            acquiredAt: string | null;
            /** @description True if the grant lasts until its execution ends, without heartbeats. `expiresAt` is then 400 days after the grant. */
            bound: boolean;
            /**
             * Format: date-time
             * @description When an operator broke the grant. Null if no operator did, or the record does not say.
             */
            brokenAt: string | null;
            /** @description The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator. */
            brokenBy: string | null;
            cap?: components["schemas"]["Cap"];
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none. */
            data: unknown;
            /** @description True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop. The holder keeps the grant until its release or its expiry. */
            ending: boolean;
            /** @description The ARN of the execution that holds the grant, or held it until the execution ended. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder. If no caller holds the key, it is the fence of the last grant.
             */
            fence: number | null;
            /** @description False if the key does not have a record, because no caller has used it, or its record was deleted after the retention. */
            hasRecord: boolean;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null if the record does not say. After a release, the last exclusive holder. */
            holder: string | null;
            /** @description The holders, in the order of their grants. Empty if no caller holds the key. */
            holders: components["schemas"]["FullHolder"][];
            /** @description True if the execution has ended, but the holder may go on for `graceSeconds`, or for as long as it sends heartbeats. */
            inGrace: boolean;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: int64
             * @description The limit that the last grant of the key named. Null if that grant was exclusive, or no grant has named a limit.
             */
            limit: number | null;
            /** @description The holder whose grant named that limit. Null if the record does not say. */
            limitBy: string | null;
            /** @description The holder before. If its grant has `expired`, or was `broken` or `superseded`, its work may be half done. For a shared grant, it is a holder whose room the grant takes. Null if there was no such holder, if it was a third-party client, or if the response to the first try was lost. */
            previous: components["schemas"]["PreviousHolder"] | null;
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says. Null if the record does not say.
             */
            remainingMs: number | null;
            /**
             * @description Whether a caller holds the key. `expired`: all holders have expired. `released`: the last holder had the key alone, and its grant has ended. `free`: none of these.
             * @enum {string}
             */
            state: "held" | "expired" | "released" | "free";
            /** @description The holder of the newer request that has asked this holder to stop. The grant is then `ending`. */
            supersededBy?: string;
            /**
             * Format: double
             * @description How long the grant lasts from each heartbeat, in seconds. Null if the record does not say.
             */
            ttlSeconds: number | null;
            /**
             * Format: int64
             * @description The total weight of all holders. Expired holders count until another caller needs their room. An exclusive holder counts 1.
             */
            used: number;
            /** @description The first waiters in line, in the order of their arrival. Present if the request has `waiters`. */
            waiters?: components["schemas"]["Waiter"][];
            /**
             * Format: int64
             * @description The number of tasks and calls in line, counted up to 100, or with `waiters` up to `limit`. It may be too low if 200 or more callers have stopped waiting within the last minute.
             */
            waiting: number;
        };
        /** @description A page of keys. A page may be empty and still have a cursor. */
        KeyPage: {
            /** @description The keys, in the order of `sort`. Without `sort`, in no particular order. */
            leases: components["schemas"]["ListedKey"][];
            /** @description To read the next page, send it as `cursor`. Null on the last page. */
            nextCursor: string | null;
        };
        /** @description A key with one of its holders: the exclusive holder, or the shared holder whose grant expires first. */
        KeySummary: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted. Null if the record does not say.
             */
            acquiredAt: string | null;
            /** @description True if the grant lasts until its execution ends, without heartbeats. `expiresAt` is then 400 days after the grant. */
            bound: boolean;
            /**
             * Format: date-time
             * @description When an operator broke the grant. Null if no operator did, or the record does not say.
             */
            brokenAt: string | null;
            /** @description The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator. */
            brokenBy: string | null;
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none. */
            data: unknown;
            /** @description True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop. The holder keeps the grant until its release or its expiry. */
            ending: boolean;
            /** @description The ARN of the execution that holds the grant, or held it until the execution ended. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder. If no caller holds the key, it is the fence of the last grant.
             */
            fence: number | null;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null if the record does not say. After a release, the last exclusive holder. */
            holder: string | null;
            /** @description True if the execution has ended, but the holder may go on for `graceSeconds`, or for as long as it sends heartbeats. */
            inGrace: boolean;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says. Null if the record does not say.
             */
            remainingMs: number | null;
            /**
             * @description Whether a caller holds the key. `expired`: all holders have expired. `released`: the last holder had the key alone, and its grant has ended. `free`: none of these.
             * @enum {string}
             */
            state: "held" | "expired" | "released" | "free";
            /** @description The holder of the newer request that has asked this holder to stop. The grant is then `ending`. */
            supersededBy?: string;
            /**
             * Format: double
             * @description How long the grant lasts from each heartbeat, in seconds. Null if the record does not say.
             */
            ttlSeconds: number | null;
        };
        /** @description The key is not available. */
        LeaseHeld: components["schemas"]["Problem"] & {
            cap?: components["schemas"]["Cap"];
            /** @enum {string} */
            code: "LeaseHeld";
            /**
             * Format: int64
             * @description With a `ticket`: how long a caller that sends `sleepMs` sleeps before it calls again, in milliseconds. If it is 0, call again at once.
             */
            comeBackMs?: number;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder.
             */
            fence: number | null;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null if the record does not say. */
            holder: string | null;
            /** @description Up to ten holders: first those whose grants end next, then those that have expired. `holder`, `fence` and `expiresAt` of the answer are those of the first one. */
            holders: components["schemas"]["Holder"][];
            /**
             * Format: int64
             * @description With a `ticket`: how long the position is kept after the answer, in milliseconds.
             */
            keptMs?: number;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: int64
             * @description The limit that this call names, or else the limit that the last grant named. Null if neither names one.
             */
            limit: number | null;
            /**
             * Format: int64
             * @description After a wait in line: the position of the call, from 1. An estimate if it is above 20.
             */
            place?: number;
            /**
             * Format: int64
             * @description When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.
             */
            retryAfterMs: number;
            /** @description The fields to add to the same call. After a wait in line, send it within `keptMs` to keep the position. If there is no `ticket`, the request has lost its position. A call of `once` with `per` keeps its slot. */
            retryWith?: {
                [key: string]: string;
            };
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:LeaseHeld";
            /**
             * Format: int64
             * @description The total weight of all holders. Expired holders count until another caller needs their room. An exclusive holder counts 1.
             */
            used: number;
            /**
             * Format: int64
             * @description After a wait in line: the number of other waiters, counted up to 100. It is an estimate if `place` is above 20, and may be too low if 200 or more callers have stopped waiting within the last minute.
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
            /** @description The current holder. Null if no caller holds the key, or the record does not say. */
            holder: string | null;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description How the caller lost it. `released`: by its own release. `taken`: to another caller. `broken`: an operator broke it. `superseded`: a newer request asks the holder to stop. `unknown`: the record does not say. `cancelled`: the wait was ended.
             * @enum {string}
             */
            reason: "released" | "taken" | "broken" | "superseded" | "unknown" | "cancelled";
            /** @enum {integer} */
            status: 412;
            /** @enum {string} */
            type: "urn:holdfast:error:LeaseLost";
        };
        /** @description The record of a ledger. */
        Ledger: {
            /** @description The alias, as `name:branch`. */
            alias: string;
            /** @description The part of the alias after the colon. */
            branch: string;
            commit: components["schemas"]["Pointer"];
            config: components["schemas"]["LedgerConfig"];
            index: components["schemas"]["Pointer"];
            /**
             * @description The kind of the alias.
             * @constant
             */
            kind: "ledger";
            /** @description Items of the record that are missing. The next write to such an item restores it. */
            missing?: ("config" | "head" | "index" | "meta" | "status")[];
            /** @description The part of the alias before the colon. */
            name: string;
            /**
             * @description Present if a third-party client made the record too large for an answer: long texts are cut, and `extra`, `dependencies` and the config are left out.
             * @constant
             */
            oversized?: true;
            /** @description True if the alias is retracted. A retracted alias stays visible. */
            retracted: boolean;
            status: components["schemas"]["Status"];
            /**
             * Format: date-time
             * @description When an item of the record was last written.
             */
            updatedAt: string;
        };
        /** @description The config of a ledger. */
        LedgerConfig: {
            /** @description The content of the config of a ledger. */
            payload: components["schemas"]["LedgerConfigPayload"] | null;
            /**
             * Format: int64
             * @description The version, which rises with each change.
             */
            v: number;
        };
        /** @description The content of the config of a ledger. */
        LedgerConfigPayload: {
            /** @description Where the default context of the ledger is stored. */
            defaultContextAddress?: string;
            /** @description Whatever the writer added. */
            extra?: {
                [key: string]: unknown;
            };
        };
        /** @description A key in a list, with the holder that has had it for the longest time. With `sort` `expiry`, with the holder whose grant expires first. */
        ListedKey: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted. Null if the record does not say.
             */
            acquiredAt: string | null;
            /** @description True if the grant lasts until its execution ends, without heartbeats. `expiresAt` is then 400 days after the grant. */
            bound: boolean;
            /**
             * Format: date-time
             * @description When an operator broke the grant. Null if no operator did, or the record does not say.
             */
            brokenAt: string | null;
            /** @description The operator that broke it: an IAM ARN or the subject of a JWT, up to 256 characters. Null if the API did not authenticate the operator. */
            brokenBy: string | null;
            cap?: components["schemas"]["Cap"];
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none. */
            data: unknown;
            /** @description True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop. The holder keeps the grant until its release or its expiry. */
            ending: boolean;
            /** @description The ARN of the execution that holds the grant, or held it until the execution ended. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder. If no caller holds the key, it is the fence of the last grant.
             */
            fence: number | null;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null if the record does not say. After a release, the last exclusive holder. */
            holder: string | null;
            /**
             * Format: int64
             * @description The number of holders.
             */
            holders: number;
            /** @description True if the execution has ended, but the holder may go on for `graceSeconds`, or for as long as it sends heartbeats. */
            inGrace: boolean;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: int64
             * @description The limit that the last grant of the key named. Null if that grant was exclusive, or no grant has named a limit.
             */
            limit: number | null;
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says. Null if the record does not say.
             */
            remainingMs: number | null;
            /**
             * @description Whether a caller holds the key. `expired`: all holders have expired. `released`: the last holder had the key alone, and its grant has ended. `free`: none of these.
             * @enum {string}
             */
            state: "held" | "expired" | "released" | "free";
            /** @description The holder of the newer request that has asked this holder to stop. The grant is then `ending`. */
            supersededBy?: string;
            /**
             * Format: double
             * @description How long the grant lasts from each heartbeat, in seconds. Null if the record does not say.
             */
            ttlSeconds: number | null;
            /**
             * Format: int64
             * @description The total weight of all holders. Expired holders count until another caller needs their room. An exclusive holder counts 1.
             */
            used: number;
            /**
             * Format: int64
             * @description How many tasks and calls are in line at most: the record still counts some that have left. Read the key for the exact number.
             */
            waiting: number;
        };
        /** @description A call of the API, and whether the caller may send it. */
        MayCall: {
            /** @description Whether the caller may send the call. Null if IAM decides. */
            allowed: boolean | null;
            /** @description The `operationId` of the call. */
            operation: string;
            /** @description The permission or the scopes that the call needs. Null if every caller may send it. */
            permission: string | null;
            /** @description The method and the path of the call. */
            route: string;
        };
        /** @description The waiter is now the next one. */
        Moved: {
            /** @description The ticket of the waiter that an earlier call had moved, and that is no longer next. Null if there was none. */
            before: string | null;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description The next grant of the key is for this waiter, unless it leaves.
             * @constant
             */
            moved: true;
            /** @description The id of a waiter in the line. Tickets sort by arrival. */
            ticket: string;
        };
        /** @description A rate of a key, as a caller or an operator named it. */
        NamedRate: {
            /**
             * Format: int64
             * @description How many units may start in each period.
             */
            limit: number;
            /** @description The name of the rate. */
            name: string;
            /** @description The period, such as `1m`. */
            per: string;
        };
        /** @description The record of an alias. */
        NameserviceRecord: components["schemas"]["Ledger"] | components["schemas"]["GraphSource"];
        /** @description The task or the call was not in line. */
        NotCancelled: {
            /**
             * @description The waiter was not in line.
             * @constant
             */
            cancelled: false;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description Why not. `granted`: the waiter already has its grant. `gone`: its task or call no longer waits. `unknown`: no waiter has this ticket.
             * @enum {string}
             */
            reason: "granted" | "gone" | "unknown";
            /** @description The id of a waiter in the line. Tickets sort by arrival. */
            ticket: string;
        };
        /** @description There is no such record. */
        NotFound: components["schemas"]["Problem"] & {
            /** @description The alias, as `name:branch`. */
            alias?: string;
            /** @enum {string} */
            code: "NotFound";
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key?: string;
            /**
             * @description The kind of the alias.
             * @enum {string}
             */
            kind?: "ledger" | "graph_source";
            /** @description The id of the report. Null if the caller named none. */
            reportId?: string | null;
            /** @description The upload that the commit names. */
            source?: string;
            /** @enum {integer} */
            status: 404;
            /** @enum {string} */
            type: "urn:holdfast:error:NotFound";
        };
        /** @description The waiter was not in line. */
        NotMoved: {
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description The waiter was not in line.
             * @constant
             */
            moved: false;
            /**
             * @description Why not. `granted`: the waiter already has its grant. `gone`: its task or call no longer waits. `unknown`: no waiter has this ticket.
             * @enum {string}
             */
            reason: "granted" | "gone" | "unknown";
            /** @description The id of a waiter in the line. Tickets sort by arrival. */
            ticket: string;
        };
        /** @description The caller did not hold the lease or the permit, which is not an error. */
        NotReleased: {
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description Why not. `taken`: another caller has the key. `broken`: an operator broke the grant. `superseded`: a newer request has replaced this one. `unknown`: the record does not show the grant.
             * @enum {string}
             */
            reason: "taken" | "broken" | "superseded" | "unknown";
            /**
             * @description The caller did not hold it.
             * @constant
             */
            released: false;
        };
        /** @description There was nothing to withdraw. */
        NotWithdrawn: {
            /**
             * @description There was nothing to withdraw.
             * @constant
             */
            cancelled: false;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description No call of the request waits, and the request does not have a grant.
             * @enum {string}
             */
            reason: "unknown";
            /** @description The id of one acquisition. */
            requestId: string;
        };
        /** @description Begins the work for a slot of a key. */
        OnceBeginRequest: {
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. Up to 4 KiB and 32 levels. */
            data?: unknown;
            /** @description The ARN of the execution that will do the work. When it ends, the grant ends too. It must be an execution of a Standard workflow or of a durable function, in the account and region of the deployment. */
            execution?: string;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /** @description A text that differs if the input of the work differs, such as a hash of the input. If the slot is done with another `inputHash`, the call fails with `Conflict`, so that no caller receives the result of other input. */
            inputHash?: string;
            /** @description How long the result is kept after the work, in seconds: at least `ttlSeconds`, and at least two periods of `per`. The default is a day, or this minimum if it is longer. */
            keepSeconds?: number;
            /** @description The name of the work, such as `nightly-report`: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. */
            key: string;
            /** @description For work that runs once in a period: the length of the period, a number and `s`, `m`, `h`, `d` or `w`, at most 366 days. The slot is the current period by the clock of the service, counted from 1970-01-01T00:00Z. Its name is a date for whole days, and an instant otherwise. Weeks begin on Monday, and have the name of their first week, such as `2026-W48`. A period begins 2.5 seconds early, or a tenth of the period if that is less. */
            per?: string;
            /** @description The id of one acquisition. A retry with the same id, holder and authenticated caller receives the grant of the first try while that grant lasts. */
            requestId?: string;
            /** @description The name of the slot, such as the time for which a schedule started the program. Slots are ordered as text, by their bytes. With `per`, send a `slot` only if `retryWith` of an earlier answer has one. Without `slot` and `per`, the slot is `-`, the only slot of the key. */
            slot?: string;
            /**
             * @description How long the caller may work without a heartbeat, in seconds.
             * @default 60
             */
            ttlSeconds?: number;
            /**
             * @description How long the call waits while another caller works for the slot, in seconds. A deployment may allow less (`maxWaitSeconds`).
             * @default 0
             */
            waitSeconds?: number;
            /** @description The time zone of `per`, an IANA name such as `Europe/Berlin`. Days and weeks then begin at midnight of that zone. The default is UTC. Only with a `per` of days or weeks. */
            zone?: string;
        };
        /** @description The result is stored. */
        OnceCompleted: {
            /**
             * @description The caller has stored its result.
             * @constant
             */
            completed: true;
            /**
             * Format: date-time
             * @description When the result was stored.
             */
            doneAt: string;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder. Null if the record does not say.
             */
            fence: number | null;
            /** @description The key of the call. */
            key: string;
            /** @description True if an earlier try had already stored a result, which stays. */
            repeated: boolean;
            /** @description The slot that is done. */
            slot: string;
        };
        /** @description Stores the result of the slot for which the caller works, and ends the grant. */
        OnceCompleteRequest: {
            /** @description The name of the work, such as `nightly-report`: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. */
            key: string;
            /** @description The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it. From the answer of `begin`. */
            leaseId: string;
            /** @description The result that every later caller of the slot receives: JSON of up to 4 KiB and 32 levels. The default is null. */
            result?: unknown;
        };
        /** @description The slot is done. */
        OnceDone: {
            /**
             * Format: date-time
             * @description When the slot was completed.
             */
            doneAt: string;
            /** @description The holder that completed the slot. Null if the record does not say. */
            doneBy: string | null;
            /**
             * Format: int64
             * @description The fence of the grant that completed the slot. Null if the record does not say.
             */
            fence: number | null;
            /** @description The key of the call. */
            key: string;
            /**
             * @description A caller has completed the slot.
             * @constant
             */
            outcome: "done";
            /** @description The stored result. */
            result: unknown;
            /** @description The slot of the call. */
            slot: string;
        };
        /** @description Forgets the slot that is done. */
        OnceForgetRequest: {
            /**
             * Format: int64
             * @description The fence of the key that the operator has read.
             */
            fence: number;
            /** @description The name of the work, such as `nightly-report`: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. */
            key: string;
        };
        /** @description The slot is forgotten. */
        OnceForgotten: {
            /**
             * Format: int64
             * @description The fence of the request.
             */
            fence: number;
            /**
             * @description The key remembers no slot now.
             * @constant
             */
            forgotten: true;
            /** @description The key of the call. */
            key: string;
            /** @description The slot that was forgotten. Null if the key did not remember a slot, for example after a retry. */
            slot: string | null;
        };
        /** @description A key of `once`: who works or has worked last, and which slot is done. */
        OnceKey: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted. Null if the record does not say.
             */
            acquiredAt: string | null;
            cap?: components["schemas"]["Cap"];
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. Null if there is none. */
            data: unknown;
            /** @description The last slot that was done. */
            done: components["schemas"]["OnceLastSlot"] | null;
            /** @description True if an operator broke the grant with `wait`, or a newer request has asked the holder to stop. The holder keeps the grant until its release or its expiry. */
            ending: boolean;
            /** @description The ARN of the execution that holds the grant, or held it until the execution ended. */
            execution: string | null;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it. Null if no caller holds the key.
             */
            expiresAt: string | null;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder. If no caller holds the key, it is the fence of the last grant.
             */
            fence: number | null;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. Null if the record does not say. After a release, the last exclusive holder. */
            holder: string | null;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description The kind of the key.
             * @constant
             */
            kind: "once";
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says. Null if the record does not say.
             */
            remainingMs: number | null;
            /** @description The stored result, in the read of one key. Null if no slot is done. */
            result?: unknown;
            /** @description The slot of the last grant. Null if the key has no record. */
            slot: string | null;
            /**
             * @description Whether a caller holds the key. `expired`: all holders have expired. `released`: the last holder had the key alone, and its grant has ended. `free`: none of these.
             * @enum {string}
             */
            state: "held" | "expired" | "released" | "free";
            /**
             * Format: double
             * @description How long the grant lasts from each heartbeat, in seconds. Null if the record does not say.
             */
            ttlSeconds: number | null;
        };
        /** @description The last slot that was done. */
        OnceLastSlot: {
            /**
             * Format: date-time
             * @description When the slot was completed.
             */
            at: string;
            /** @description The holder that completed the slot. Null if the record does not say. */
            by: string | null;
            /**
             * Format: int64
             * @description The fence of the grant that completed the slot. Null if the record does not say.
             */
            fence: number | null;
            /**
             * Format: date-time
             * @description Until when the result is kept.
             */
            keptUntil: string;
            /** @description The slot. */
            slot: string;
        };
        /** @description No result is stored. */
        OnceNotCompleted: {
            /**
             * @description The caller no longer holds the grant.
             * @constant
             */
            completed: false;
            /** @description The key of the call. */
            key: string;
            /**
             * @description `released`: the grant was released, or the execution has ended. `taken`: another caller has begun since. `broken`: an operator broke the grant. `unknown`: the record does not show the grant.
             * @enum {string}
             */
            reason: "released" | "taken" | "broken" | "unknown";
        };
        /** @description A page of keys, without results. An empty page may have a cursor. */
        OncePage: {
            /** @description The keys, in no particular order. */
            keys: components["schemas"]["OnceKey"][];
            /** @description To read the next page, send it as `cursor`. Null on the last page. */
            nextCursor: string | null;
        };
        /** @description The caller is to work for the slot, and then call `complete`. */
        OnceRun: {
            /**
             * Format: date-time
             * @description When the lease or the permit was granted.
             */
            acquiredAt: string;
            /** @description JSON that the holder shows to every reader of the key, such as a link to its log. */
            data?: unknown;
            /**
             * Format: date-time
             * @description When the lease or the permit expires, unless a heartbeat extends it.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder.
             */
            fence: number;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it. */
            leaseId: string;
            /**
             * @description No other caller works for the slot, and the slot is not done.
             * @constant
             */
            outcome: "run";
            /** @description The holder before. If its grant has `expired`, or was `broken` or `superseded`, its work may be half done. For a shared grant, it is a holder whose room the grant takes. Null if there was no such holder, if it was a third-party client, or if the response to the first try was lost. */
            previous: components["schemas"]["PreviousHolder"] | null;
            /**
             * Format: int64
             * @description How much longer the grant lasted when the service answered, in milliseconds, whatever your clock says.
             */
            remainingMs: number;
            /** @description True if the request already had this grant, because the call is a retry or a response was lost. */
            repeated: boolean;
            /** @description The slot of the grant. For a retry, the slot of the first try. */
            slot: string;
            /** @description A UUID that changes with each heartbeat. It is a secret. */
            version: string;
            /**
             * Format: int64
             * @description How long the call waited, from its arrival to its answer, in milliseconds. On the clock of the caller, the grant lasts until `sentAt + waitedMs + remainingMs`, where `sentAt` is a moment before the call was sent.
             */
            waitedMs: number;
        };
        /** @description A later slot is done, so this one is no longer wanted. Results of earlier slots are not kept. */
        OnceSuperseded: {
            /**
             * Format: date-time
             * @description When the slot was completed.
             */
            doneAt: string;
            /** @description The holder that completed the slot. Null if the record does not say. */
            doneBy: string | null;
            /** @description The later slot. */
            doneSlot: string;
            /**
             * Format: int64
             * @description The fence of the grant that completed the slot. Null if the record does not say.
             */
            fence: number | null;
            /** @description The key of the call. */
            key: string;
            /**
             * @description A caller has completed a later slot.
             * @constant
             */
            outcome: "superseded";
            /** @description The slot of the call. */
            slot: string;
        };
        /** @description The outcome of the write is unknown. */
        OutcomeUnknown: components["schemas"]["Problem"] & {
            /** @description What is there now: the key with a holder, or the value of the alias. Null if there is nothing. */
            actual?: components["schemas"]["KeySummary"] | components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["SeenRecord"] | components["schemas"]["Retraction"] | components["schemas"]["RateKey"] | null;
            /** @description The alias, as `name:branch`. */
            alias?: string;
            /** @enum {string} */
            code: "OutcomeUnknown";
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key?: string;
            /** @description The key of the object in the bucket. */
            path?: string;
            /**
             * Format: int64
             * @description When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.
             */
            retryAfterMs: number;
            /** @description The fields to add to the same call. */
            retryWith: {
                [key: string]: string;
            };
            /** @enum {integer} */
            status: 504;
            /** @enum {string} */
            type: "urn:holdfast:error:OutcomeUnknown";
        };
        /** @description A task that waits in line, or already has its grant. */
        Parked: {
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description True if the task waits in line. False if it was notified at once, or another call is notifying it. */
            parked: boolean;
            /** @description The id of a waiter in the line. Tickets sort by arrival. */
            ticket: string;
        };
        /** @description A commit that has begun and has not replaced the object. Its writer may have exited. */
        PathInFlight: {
            /** @description The id of one commit. Null for a third-party client. */
            commitId: string | null;
            /** @description The ETag that the commit replaces, with its quotes. Null if the commit creates the object. */
            expectedEtag: string | null;
            /**
             * Format: int64
             * @description How often a commit has taken over the record of another one for the same precondition.
             */
            generation: number;
            /** @description The key of the object in the bucket. */
            path: string;
            /**
             * Format: int64
             * @description How much of its time the writer had left when the service answered, in milliseconds. Null for a third-party client.
             */
            remainingMs: number | null;
            /**
             * Format: int64
             * @description How long the writer may take, in milliseconds.
             */
            timeoutMs: number | null;
            /**
             * Format: date-time
             * @description When the commit began. Null for a third-party client.
             */
            writtenAt: string | null;
        };
        /** @description The body is too large. */
        PayloadTooLarge: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "PayloadTooLarge";
            /**
             * Format: int64
             * @description The limit in bytes, if the request exceeds it.
             */
            limitBytes?: number;
            /**
             * Format: int64
             * @description The limit of values, if the request exceeds it.
             */
            limitValues?: number;
            /** @enum {integer} */
            status: 413;
            /** @enum {string} */
            type: "urn:holdfast:error:PayloadTooLarge";
        };
        /** @description The head of the commits or of the index of an alias. */
        Pointer: {
            /** @description Where the commit or the index is stored. Null before the first publish. */
            address: string | null;
            /**
             * Format: int64
             * @description The watermark: a whole number that only a repair lowers.
             */
            t: number;
        };
        /** @description The object is not in the expected state. */
        PreconditionFailed: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "PreconditionFailed";
            /** @description The ETag of the object at the path. Null if there is no object. */
            etag: string | null;
            /** @description The fence of an object: only commits with this key and a token at least as high replace the object. */
            fence?: components["schemas"]["Fence"] | null;
            /** @description The key of the object in the bucket. */
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
        /** @description The holder before. If its grant has `expired`, or was `broken` or `superseded`, its work may be half done. For a shared grant, it is a holder whose room the grant takes. Null if there was no such holder, if it was a third-party client, or if the response to the first try was lost. */
        PreviousHolder: {
            /**
             * Format: date-time
             * @description When that grant ended.
             */
            at: string;
            /** @description The operator that broke the grant: an IAM ARN or the subject of a JWT, up to 256 characters. If the grant was `superseded`, the newer holder. Absent if the record does not say. */
            by?: string;
            /**
             * @description How that grant ended. `superseded`: its holder released it because a newer request had asked the holder to stop. `expired`: the grant expired, even if the holder had been asked to stop.
             * @enum {string}
             */
            ended: "released" | "expired" | "broken" | "executionEnded" | "superseded";
            /**
             * Format: int64
             * @description The fencing token, higher in each grant of the key, so that a store can refuse writes of an earlier holder.
             */
            fence: number;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
        };
        /** @description An error of the service, as RFC 9457 defines it. Each code adds its own fields. */
        Problem: {
            /**
             * @description The code, for programs.
             * @enum {string}
             */
            code: "InvalidRequest" | "Forbidden" | "NotFound" | "LeaseHeld" | "Superseded" | "CommitInProgress" | "Conflict" | "AlreadyExists" | "LeaseLost" | "PreconditionFailed" | "FenceRejected" | "PayloadTooLarge" | "RateExceeded" | "QueueFull" | "Throttled" | "Unavailable" | "OutcomeUnknown";
            /** @description The reason, for people. */
            detail: string;
            /**
             * Format: int64
             * @description The HTTP status.
             */
            status: number;
            /** @description The meaning of the code. */
            title: string;
            /** @description The id of the Lambda request, also in the log line of the call. */
            traceId: string;
            /** @description The URN of the code. */
            type: string;
        };
        /** @description Raises the commit head of a ledger. A `t` that is not higher is stale, and changes nothing. */
        PublishCommit: {
            /** @description Where the commit or the index is stored. */
            address: string;
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishCommit";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
            /**
             * Format: int64
             * @description The watermark: a whole number that only a repair lowers.
             */
            t: number;
        };
        /** @description The outcome of a publish. */
        Published: {
            /** @description The alias, as `name:branch`. */
            alias: string;
            /** @description True if this call created the alias. */
            created: boolean;
            /** @description What the operation changes, as it is now: the record of a new alias, or else the ref, the status, the config or the retraction. */
            current: components["schemas"]["Ledger"] | components["schemas"]["GraphSource"] | components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["Retracted"];
            /**
             * @description `stale`: the alias has a newer value, and nothing was written.
             * @enum {string}
             */
            outcome: "updated" | "stale";
            /** @description True if an earlier try of this call took effect. */
            repeated: boolean;
        };
        /** @description Creates a graph source, or replaces its definition. */
        PublishGraphSource: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The config: any JSON up to 4 KiB, or a string that is JSON. */
            config: unknown;
            /** @description The aliases from which the graph source is made. */
            dependencies: string[];
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishGraphSource";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
            /** @description The type of the graph source. */
            sourceType: string;
        };
        /** @description Raises the index of a graph source. */
        PublishGraphSourceIndex: {
            /** @description Where the commit or the index is stored. */
            address: string;
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishGraphSourceIndex";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
            /**
             * Format: int64
             * @description The watermark: a whole number that only a repair lowers.
             */
            t: number;
        };
        /** @description Raises the index of a ledger. A `t` that is not higher is stale, and changes nothing. */
        PublishIndex: {
            /** @description Where the commit or the index is stored. */
            address: string;
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description If true, replaces an index at the same `t`.
             * @default false
             */
            allowEqual?: boolean;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "publishIndex";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
            /**
             * Format: int64
             * @description The watermark: a whole number that only a repair lowers.
             */
            t: number;
        };
        /** @description Creates or changes an alias: `op` says how. */
        PublishRequest: components["schemas"]["InitLedger"] | components["schemas"]["PublishCommit"] | components["schemas"]["PublishIndex"] | components["schemas"]["Retract"] | components["schemas"]["CompareAndSetRef"] | components["schemas"]["FastForwardCommit"] | components["schemas"]["PushStatus"] | components["schemas"]["PushConfig"] | components["schemas"]["PublishGraphSource"] | components["schemas"]["PublishGraphSourceIndex"] | components["schemas"]["RetractGraphSource"];
        /** @description Deletes all items of a retracted alias. */
        Purge: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The value that the caller saw, which the alias must still have. Null if the items of the alias do not form a record. */
            expected: {
                /** @description The commit ref of a ledger. */
                commit?: {
                    /** @description Where the commit or the index is stored. */
                    address: string | null;
                    /**
                     * Format: int64
                     * @description The watermark: a whole number that only a repair lowers.
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
                    /** @description Where the commit or the index is stored. */
                    address: string | null;
                    /**
                     * Format: int64
                     * @description The watermark: a whole number that only a repair lowers.
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
                    /** @description The state, in one word. */
                    state: string;
                    /**
                     * Format: int64
                     * @description The version.
                     */
                    v: number;
                };
            } | null;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "purge";
            /** @description The id of one purge, which makes retries safe: a retry within ten minutes receives the outcome of the first try. Other operations ignore it. */
            requestId?: string;
        };
        /** @description Sets the config of a ledger, if its version still is as expected. */
        PushConfig: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The config that the ledger must have. */
            expected: {
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description The config to set. The version must rise. */
            next: {
                /** @description The content. Null empties the config. */
                payload: {
                    /** @description Where the default context of the ledger is stored. */
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
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "pushConfig";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
        };
        /** @description Sets the status, if its state and version still are as expected. */
        PushStatus: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The status that the alias must have. */
            expected: {
                /** @description The state, in one word. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description The status to set. The version must rise. */
            next: {
                /** @description Any JSON object up to 4 KiB. */
                extra?: {
                    [key: string]: unknown;
                };
                /** @description The state, in one word. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "pushStatus";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
        };
        /** @description Too many tasks and callers wait. */
        QueueFull: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "QueueFull";
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: int64
             * @description The value of that parameter. The limit of open reservations is 200.
             */
            limit: number;
            /**
             * @description The parameter of the deployment that is reached. `openReservations`: too many reservations of the key are open.
             * @enum {string}
             */
            quota: "maxWaitersPerKey" | "maxWaitersPerNamespace" | "openReservations";
            /**
             * Format: int64
             * @description When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.
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
        /** @description The rate is used up for longer than the call may wait. */
        RateExceeded: components["schemas"]["Problem"] & {
            /** @description The name of the tightest rate. */
            boundBy: string;
            cap?: components["schemas"]["Cap"];
            /** @enum {string} */
            code: "RateExceeded";
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * Format: int64
             * @description When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.
             */
            retryAfterMs: number;
            /** @enum {integer} */
            status: 429;
            /** @enum {string} */
            type: "urn:holdfast:error:RateExceeded";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "RateExceeded";
        };
        /** @description The reservations of the key are forgotten. */
        RateForgotten: {
            /**
             * @description The next caller starts at once.
             * @constant
             */
            forgotten: true;
            /** @description The key of the call. */
            key: string;
        };
        /** @description The rates of a key. */
        RateKey: {
            /**
             * Format: date-time
             * @description When the last caller reserved. Null if no caller has.
             */
            at: string | null;
            /** @description The holder of the last reservation. Null if there is none. */
            by: string | null;
            cap?: components["schemas"]["Cap"];
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description The kind of the key.
             * @constant
             */
            kind: "rate";
            /**
             * Format: int64
             * @description How many reservations are open, which means not settled yet.
             */
            open: number;
            /**
             * Format: date-time
             * @description Until when the rates are used up. Null if no caller has reserved.
             */
            paidUntil: string | null;
            /** @description The rates that the last caller named. */
            rates: components["schemas"]["NamedRate"][];
            /** @description The rates that the caller before named. */
            ratesBefore: components["schemas"]["NamedRate"][];
        };
        /** @description A page of keys. An empty page may have a cursor. */
        RatePage: {
            /** @description The keys, in no particular order. */
            keys: components["schemas"]["RateKey"][];
            /** @description To read the next page, send it as `cursor`. Null on the last page. */
            nextCursor: string | null;
        };
        /** @description A page of records. A page may be empty and still have a cursor. */
        RecordPage: {
            /** @description To read the next page, send it as `cursor`. Null on the last page. */
            nextCursor: string | null;
            /** @description The records, by kind and then by alias. */
            records: components["schemas"]["NameserviceRecord"][];
        };
        /** @description The grant has ended, and the next waiter receives the key. */
        Released: {
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /**
             * @description The caller held it.
             * @constant
             */
            released: true;
        };
        /** @description Releases a lease or a permit. */
        ReleaseRequest: {
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The secret that proves the grant. Heartbeat and release need it, and heartbeats do not change it. From the answer of `acquire`. */
            leaseId: string;
        };
        /** @description The outcome of a repair. */
        Repaired: {
            /** @description The alias, as `name:branch`. */
            alias: string;
            /** @description What the operation changes, as it is now. Null after a purge. */
            current: components["schemas"]["Pointer"] | components["schemas"]["Status"] | components["schemas"]["LedgerConfig"] | components["schemas"]["Unretracted"] | null;
            /**
             * @description The operation.
             * @enum {string}
             */
            op: "resetRef" | "resetStatus" | "resetConfig" | "unretract" | "purge";
            /** @description True if an earlier try of this call took effect. */
            repeated: boolean;
        };
        /** @description Repairs an alias: `op` says how. */
        RepairRequest: components["schemas"]["ResetRef"] | components["schemas"]["ResetStatus"] | components["schemas"]["ResetConfig"] | components["schemas"]["Unretract"] | components["schemas"]["Purge"];
        /** @description A report, complete or stopped. */
        Report: {
            /** @description True if the event of each complete report has reached the event bus. */
            announced: boolean;
            /** @description True if all tables and the bucket were scanned, and, in a namespace, all rows of the report were counted. */
            complete: boolean;
            expired: components["schemas"]["ExpiredTallies"];
            /**
             * Format: date-time
             * @description When the report was complete. Null until then.
             */
            finishedAt: string | null;
            /** @description The namespaces with the most held leases and permits, up to 100. On a route of a namespace, only that namespace. */
            heldByNamespace: components["schemas"]["HeldLeases"][];
            /** @description Where the rows are in S3, as newline-delimited JSON. */
            location: string;
            /**
             * Format: int64
             * @description The number of expired rows that DynamoDB's TTL can never delete.
             */
            neverDeletable: number;
            /**
             * Format: double
             * @description The read units that DynamoDB charged.
             */
            readUnits: number;
            /** @description The id of the report. */
            reportId: string;
            /**
             * Format: int64
             * @description The number of rows and objects that the report has read.
             */
            scanned: number;
            /**
             * Format: date-time
             * @description When the report began. A report may take several runs.
             */
            startedAt: string;
            /**
             * @description Why the report is not complete. The next run continues the report. If `finishedAt` is set, the report itself is complete, and only the counting for a namespace was cut short. Null if the report is complete.
             * @enum {string|null}
             */
            stoppedBy: "time" | "Throttled" | null;
        };
        /** @description A report with a page of its rows. A page of one kind may be empty and still have a cursor. */
        ReportPage: {
            /** @description True if all tables and the bucket were scanned, and, in a namespace, all rows of the report were counted. */
            complete: boolean;
            expired: components["schemas"]["ExpiredTallies"];
            /**
             * Format: date-time
             * @description When the report was complete. Null until then.
             */
            finishedAt: string | null;
            /** @description The namespaces with the most held leases and permits, up to 100. On a route of a namespace, only that namespace. */
            heldByNamespace: components["schemas"]["HeldLeases"][];
            /** @description Where the rows are in S3, as newline-delimited JSON. */
            location: string;
            /**
             * Format: int64
             * @description The number of expired rows that DynamoDB's TTL can never delete.
             */
            neverDeletable: number;
            /** @description To read the next page, send it as `cursor`. Null on the last page. */
            nextCursor: string | null;
            /**
             * Format: double
             * @description The read units that DynamoDB charged.
             */
            readUnits: number;
            /** @description The id of the report. */
            reportId: string;
            /** @description The records, in the order in which the report found them. */
            rows: components["schemas"]["ExpiredRecord"][];
            /**
             * Format: int64
             * @description The number of rows and objects that the report has read.
             */
            scanned: number;
            /**
             * Format: date-time
             * @description When the report began. A report may take several runs.
             */
            startedAt: string;
        };
        /** @description Reports what has expired. The call takes no fields. */
        ReportRequest: Record<string, never>;
        /** @description Whether the reservation was cancelled. */
        ReservationCancelled: {
            /** @description False if the reservation was already cancelled, or cannot be: without `settle`, only the last reservation of a key can be cancelled. */
            cancelled: boolean;
            /** @description The key of the call. */
            key: string;
        };
        /** @description When the work may start. */
        Reserved: {
            /** @description The name of the tightest rate. */
            boundBy: string;
            /** @description The key of the call. */
            key: string;
            /** @description Present if the caller before named other rates. The faster rate then counts. */
            rateChanged?: {
                /** @description What the caller before named. */
                from: components["schemas"]["NamedRate"][];
                /** @description What this call names. */
                to: components["schemas"]["NamedRate"][];
            };
            /** @description True if an earlier try of the request had already reserved the start. */
            repeated: boolean;
            /** @description The id of the reservation, for `settle`. */
            reservation: string;
            /**
             * Format: int64
             * @description `waitMs` in whole seconds, rounded up, for `SecondsPath` of a `Wait` state.
             */
            sleepSeconds: number;
            /**
             * Format: date-time
             * @description The earliest start of the work.
             */
            startAt: string;
            /**
             * Format: int64
             * @description How long to sleep from the answer to the start, in milliseconds.
             */
            waitMs: number;
        };
        /** @description Reserves a start at one to four rates of a key. */
        ReserveRequest: {
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /** @description The name of what the rate protects, such as an API: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. */
            key: string;
            /** @description One to four rates with different names. The start respects each of them. A rate is `limit` units in each period `per`. `units` is what this call takes, 1 by default. `burst` is how many units may start at once after the key was idle: by default only `units`, so that starts are spaced evenly. `name` is `requests` by default. */
            rates: {
                /** @description How many units may start at once after the key was idle. The default and the least is `units`. */
                burst?: number;
                /** @description How many units may start in each period. */
                limit: number;
                /**
                 * @description The name of the rate.
                 * @default requests
                 */
                name?: string;
                /** @description The period: a number and `s`, `m`, `h` or `d`, at most 31 days. */
                per: string;
                /**
                 * @description What this call takes, at most ten times the limit.
                 * @default 1
                 */
                units?: number;
            }[];
            /** @description The id of one reservation, which makes retries safe. A retry with the same id, holder, rates and authenticated caller receives the start of the first try, unless that start has passed or another caller has reserved since. */
            requestId?: string;
            /**
             * @description For work that knows its units only at the end: if true, the caller will report the units that its work really took. At most 200 reservations of a key can be open, which means not settled yet. After 15 minutes, an open reservation may keep its estimate.
             * @default false
             */
            settle?: boolean;
            /**
             * @description The latest start that the caller accepts, in seconds from now. If the start would be later, nothing is reserved. The call itself never waits. With `settle`, at most the longest period.
             * @default 0
             */
            waitSeconds?: number;
        };
        /** @description Sets the config of a ledger to the same version or a lower one. */
        ResetConfig: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The value that the caller saw, which the alias must still have. */
            expected: {
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description The value to set. The version must not rise. */
            next: {
                /** @description The content. Null empties the config. */
                payload: {
                    /** @description Where the default context of the ledger is stored. */
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
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "resetConfig";
            /** @description The id of one purge, which makes retries safe: a retry within ten minutes receives the outcome of the first try. Other operations ignore it. */
            requestId?: string;
        };
        /** @description Replaces or removes the fence of an object, if the object is as the administrator has read it. */
        ResetFenceRequest: {
            /** @description The id of this reset, which makes retries safe: a retry with the same id receives the outcome of the first try. Up to 64 printable ASCII characters without spaces and `=?`. */
            commitId?: string;
            /** @description The fence that the object must have. */
            expectedFence: {
                /** @description The key of the lease. */
                key: string;
                /**
                 * Format: int64
                 * @description The highest token that has written the object.
                 */
                token: number;
            };
            /** @description The fence that commits need from then on. Null removes the fence: every commit can then replace the object. */
            fence: {
                /** @description The key of the lease. */
                key: string;
                /**
                 * Format: int64
                 * @description The lowest token that may write the object. At most a day ahead of the current time in milliseconds since 1970.
                 */
                token: number;
            } | null;
            /** @description The ETag that the object must have. */
            ifMatch: string;
            /** @description The key of the object in the bucket: 1 to 1,024 bytes of UTF-8, without empty segments and without the segments '.' and '..', and not under .holdfast/. */
            path: string;
            /**
             * @description How long to wait for a commit of a third-party client, in seconds.
             * @default 0
             */
            waitSeconds?: number;
        };
        /** @description Sets a ref to the same `t` or a lower one. */
        ResetRef: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The value that the caller saw, which the alias must still have. */
            expected: {
                /** @description Where the commit or the index is stored. */
                address: string | null;
                /**
                 * Format: int64
                 * @description The watermark: a whole number that only a repair lowers.
                 */
                t: number;
            };
            /** @description The ref to set. For a ref that points to nothing, the address is null and `t` is 0. */
            next: {
                /** @description Where the commit or the index is stored. */
                address: string | null;
                /**
                 * Format: int64
                 * @description The watermark: a whole number that only a repair lowers.
                 */
                t: number;
            };
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "resetRef";
            /**
             * @description The ref: the head of the commits, or of the index.
             * @enum {string}
             */
            ref: "commit" | "index";
            /** @description The id of one purge, which makes retries safe: a retry within ten minutes receives the outcome of the first try. Other operations ignore it. */
            requestId?: string;
        };
        /** @description Sets the status to the same version or a lower one. */
        ResetStatus: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The value that the caller saw, which the alias must still have. */
            expected: {
                /** @description The state, in one word. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /** @description The value to set. The version must not rise. */
            next: {
                /** @description Any JSON object up to 4 KiB. */
                extra?: {
                    [key: string]: unknown;
                };
                /** @description The state, in one word. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "resetStatus";
            /** @description The id of one purge, which makes retries safe: a retry within ten minutes receives the outcome of the first try. Other operations ignore it. */
            requestId?: string;
        };
        /** @description Retracts a ledger, which stays visible. */
        Retract: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "retract";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
        };
        /** @description The ledger or the graph source is retracted. */
        Retracted: {
            /**
             * @description The alias is retracted.
             * @constant
             */
            retracted: true;
        };
        /** @description Retracts a graph source. */
        RetractGraphSource: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "retractGraphSource";
            /** @description The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it. */
            requestId?: string;
        };
        /** @description Whether a ledger or a graph source is retracted. */
        Retraction: {
            /** @description True if the alias is retracted. */
            retracted: boolean;
        };
        /** @description Moves a waiter to the front of the line of a key. */
        RunNextRequest: {
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The id of a waiter in the line. Tickets sort by arrival. Read the key with `waiters` to see it, or take it from the answer of `acquire`. */
            ticket: string;
        };
        /** @description The part of a record that a purge compares. */
        SeenRecord: {
            commit?: components["schemas"]["Pointer"];
            /** @description The config. */
            config: {
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
            index: components["schemas"]["Pointer"];
            /**
             * @description The kind of the alias.
             * @enum {string}
             */
            kind: "ledger" | "graph_source";
            /** @description True if the alias is retracted. Only a retracted alias can be purged. */
            retracted: boolean;
            /** @description The status. */
            status: {
                /** @description The state, such as `ready`. */
                state: string;
                /**
                 * Format: int64
                 * @description The version.
                 */
                v: number;
            };
        };
        /** @description Whether the reservation was open. */
        Settled: {
            /** @description The key of the call. */
            key: string;
            /** @description False if the reservation was already settled or cancelled, or has kept its estimate after 15 minutes. */
            settled: boolean;
        };
        /** @description Corrects or cancels a reservation. */
        SettleRequest: {
            /**
             * @description If true, the call cancels the reservation, which is possible until its start. Not with `units`.
             * @constant
             */
            cancel?: true;
            /** @description The name of what the rate protects, such as an API: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. */
            key: string;
            /** @description From the answer of `reserve`. */
            reservation: string;
            /** @description The units that the work took, for each rate by its name. A rate that is left out keeps its estimate. More than ten times the limit counts as ten times the limit. Not with `cancel`. */
            units?: {
                [key: string]: number;
            };
        } & ({
            units: unknown;
        } | {
            cancel: unknown;
        });
        /** @description The records that were spared. */
        Spared: {
            /** @description The number of records, by the reason for sparing them. */
            by: {
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                ageUnknown?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                changed?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                fenceAhead?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                gone?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                leftToQueue?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                neverDeletable?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                partOfRecord?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                tooYoung?: number;
                /**
                 * Format: int64
                 * @description The number of records, by the reason for sparing them.
                 */
                unrecognisable?: number;
            };
            /**
             * Format: int64
             * @description The number of records.
             */
            count: number;
            /** @description The first 100 records. */
            records: components["schemas"]["CleanedRecord"][];
        };
        /** @description The status of a ledger or a graph source. */
        Status: {
            /** @description Whatever the writer added. */
            extra: {
                [key: string]: unknown;
            };
            /** @description The state, such as `ready`. */
            state: string;
            /**
             * Format: int64
             * @description The version, which rises with each change.
             */
            v: number;
        };
        /** @description The object at a path. All other fields are null if there is no object. */
        StoredObject: {
            /** @description The id of the commit that wrote the object. Null if a third-party client wrote it. */
            commitId: string | null;
            /** @description The media type. */
            contentType: string | null;
            /** @description The ETag, with its quotes. */
            etag: string | null;
            /** @description The fence of an object: only commits with this key and a token at least as high replace the object. */
            fence: components["schemas"]["Fence"] | null;
            /** @description A commit that has begun and has not replaced the object. Its writer may have exited. */
            inFlight: components["schemas"]["CommitInFlight"] | null;
            /** @description The metadata that callers put on the object. */
            metadata: {
                [key: string]: string;
            } | null;
            /** @description The key of the object in the bucket. */
            path: string;
            /**
             * Format: int64
             * @description The size in bytes.
             */
            size: number | null;
            /** @description The version of the object, if the bucket has versions. */
            versionId: string | null;
        };
        /** @description A newer request has replaced this one. */
        Superseded: components["schemas"]["Problem"] & {
            /** @description The holder of the newer request. */
            by: string;
            /** @enum {string} */
            code: "Superseded";
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @enum {integer} */
            status: 409;
            /** @enum {string} */
            type: "urn:holdfast:error:Superseded";
        } & {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            code: "Superseded";
        };
        /** @description The store is throttling requests. */
        Throttled: components["schemas"]["Problem"] & {
            /** @enum {string} */
            code: "Throttled";
            /**
             * Format: int64
             * @description When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.
             */
            retryAfterMs: number;
            /** @description Fields to add to the same call. A call that was in line then receives its grant or keeps its position, and a call of `once` with `per` keeps its slot. */
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
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key?: string;
            /**
             * Format: int64
             * @description When a retry may succeed, in milliseconds from the answer. The header `Retry-After` says the same in seconds.
             */
            retryAfterMs?: number;
            /** @description Fields to add to the same call. A call that was in line then receives its grant or keeps its position, and a call of `once` with `per` keeps its slot. */
            retryWith?: {
                [key: string]: string;
            };
            /** @enum {integer} */
            status: 503;
            /** @enum {string} */
            type: "urn:holdfast:error:Unavailable";
        };
        /** @description Ends a retraction. */
        Unretract: {
            /** @description The alias, as `name:branch`. A name alone means its branch `main`. */
            alias: string;
            /** @description The value that the caller saw, which the alias must still have. */
            expected: {
                /**
                 * @description The kind of the alias.
                 * @enum {string}
                 */
                kind: "ledger" | "graph_source";
            };
            /**
             * @description The operation. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            op: "unretract";
            /** @description The id of one purge, which makes retries safe: a retry within ten minutes receives the outcome of the first try. Other operations ignore it. */
            requestId?: string;
        };
        /** @description The ledger or the graph source is not retracted. */
        Unretracted: {
            /**
             * @description The alias is not retracted.
             * @constant
             */
            retracted: false;
        };
        /** @description Where to send the bytes of an object, which a commit then names as its source. */
        Upload: {
            /**
             * Format: date-time
             * @description When the URL expires. An upload that has begun by then still completes.
             */
            expiresAt: string;
            /** @description The headers to send with the upload. They are part of the signature. */
            headers: {
                [key: string]: string;
            };
            /**
             * @description The method of the upload.
             * @constant
             */
            method: "PUT";
            /** @description The id of the upload, for `source` of a commit. */
            uploadId: string;
            /** @description The signed URL for the bytes. */
            url: string;
        };
        /** @description Asks for a signed URL for the bytes of an object. */
        UploadRequest: {
            /** @description The media type of the object. It becomes part of the signature, so the upload must send the same. */
            contentType?: string;
            /**
             * Format: int64
             * @description The size in bytes. It becomes part of the signature, so the upload must have exactly this size.
             */
            sizeBytes?: number;
        };
        /** @description A task, a callback or a call in line. */
        Waiter: {
            /**
             * Format: date-time
             * @description When the wait ends with `LeaseHeld`. For a call: when the current call ends, though its program may call again. For a caller that sleeps: when it loses its place.
             */
            deadline: string;
            /**
             * Format: date-time
             * @description For a caller that sleeps between two calls: when its next call must come. Null for every other waiter.
             */
            dueAt: string | null;
            /** @description The ARN of the execution that waits for the grant. Null if the request named none. */
            execution: string | null;
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. */
            holder: string;
            /**
             * @description A parked Step Functions task, the callback of a durable function, or a call of `acquire` that waits.
             * @enum {string}
             */
            kind: "task" | "callback" | "caller";
            /** @description The operator that moved the waiter to the front: an IAM ARN or the subject of a JWT. Null if the API did not authenticate the operator. Absent if no operator has moved it. */
            movedBy?: string | null;
            /**
             * Format: date-time
             * @description When the wait began. A call that keeps its position keeps this instant.
             */
            parkedAt: string;
            /**
             * @description What the request replaces: older requests that wait, or also the holder. Absent if the request did not say `replace`.
             * @enum {string}
             */
            replace?: "waiting" | "running";
            /** @description The id of a waiter in the line. Tickets sort by arrival. */
            ticket: string;
        };
        /** @description The authenticated caller. */
        Whoami: {
            /**
             * @description How the caller was authorized: by IAM, by a JWT, by the permission to invoke the function, or not at all (`npm start`).
             * @enum {string}
             */
            authorizedBy: "iam" | "jwt" | "lambda" | "nobody";
            /** @description Every call of the API. */
            calls: components["schemas"]["MayCall"][];
            /** @description The namespaces that the token of the caller names, or the namespace whose alias a task invokes. Otherwise null. */
            namespaces: string[] | null;
            /** @description The ARN that IAM gives the caller, or the subject of its token. Null if it has neither. */
            principal: string | null;
            /** @description The version of the deployment. */
            version: string;
        };
        /** @description The request neither waits in line nor holds the key through a call that was in line. */
        Withdrawn: {
            /**
             * @description The request is withdrawn.
             * @constant
             */
            cancelled: true;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The id of one acquisition. */
            requestId: string;
        };
        /** @description Takes a request of the caller out of the line, or ends its grant. */
        WithdrawRequest: {
            /** @description The name that the holder gives itself, for people who read the key. It proves nothing. As sent to `acquire`. */
            holder: string;
            /** @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. */
            key: string;
            /** @description The id of one acquisition. As sent to `acquire`. */
            requestId: string;
            /** @description The id of a waiter in the line. Tickets sort by arrival. With the ticket of `retryWith`, Holdfast need not read the whole line. Leave it out if the response to another call of the request was lost, because that call may have a position of its own. */
            ticket?: string;
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
        /** @description The request does not carry a valid token. */
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
        /** @description The version of the deployment. Answers of the gateway itself do not have it. */
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
            /** @description The document. */
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
                 * @description The key of the object in the bucket: 1 to 1,024 bytes of UTF-8, without empty segments and without the segments '.' and '..', and not under .holdfast/.
                 * @example data/part-0
                 */
                path: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The object, or null fields if there is none. */
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
            /** @description The object was committed by an earlier try. */
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
            /** @description The object is committed. */
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
                /** @description The `nextCursor` of the page before, to read the next page. */
                cursor?: string;
                /** @description The number of rows to list. The default is 100. */
                limit?: number;
                /**
                 * @description Only paths that begin with this text.
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
            /** @description A page of commits. */
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
                /** @description The `nextCursor` of the page before, to read the next page. */
                cursor?: string;
                /**
                 * @description Only records of this kind.
                 * @example abandonedLease
                 */
                kind?: "abandonedLease" | "releasedLease" | "abandonedPermit" | "holderEnded" | "holderUnknown" | "abandonedRun" | "endedRun" | "commit" | "firstSight" | "waiter" | "upload" | "nameserviceRow";
                /** @description The number of rows to list. The default is 100. */
                limit?: number;
                /** @description The id of the report. Without it, the last complete report. */
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
            /** @description What was deleted, and what was spared. */
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
            /** @description A report that stopped before its end. The next call continues it. */
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
            /** @description The key is not available. */
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
            /** @description The deployment answers. */
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
                /** @description The `nextCursor` of the page before, to read the next page. Not with `key`. */
                cursor?: string;
                /** @description Only keys that this holder has. Each row shows the grant of this holder. Not with `key`. */
                holder?: string;
                /**
                 * @description The name of the resource: 1 to 1,024 bytes of UTF-8, not beginning with `holdfast:`. Without a key, the answer is a page of keys.
                 * @example nightly-report
                 */
                key?: string;
                /** @description The number of rows to list. The default is 100. With `key`, it is the number of waiters, and needs `waiters`. */
                limit?: number;
                /** @description Only keys that begin with this text. Not with `key`. */
                prefix?: string;
                /** @description The order of the rows: by `key`, the next expiry first (`expiry`), the longest held key first (`held`), or the longest line first (`waiting`). With `sort`, each page reads the whole table, and fails with `Unavailable` if one call cannot read all of it. Not with `key`. */
                sort?: "key" | "expiry" | "held" | "waiting";
                /** @description Only keys in this state. `held`: at least one holder has not expired. `active`: the key has a holder, expired or not, a line, or a cap. Not with `key`. */
                state?: "held" | "expired" | "released" | "free" | "active";
                /**
                 * @description If true, the answer lists the tasks and calls in line, in the order of their arrival. Needs `key`.
                 * @example true
                 */
                waiters?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key, or the page. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"] | components["schemas"]["KeyPage"];
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
            /** @description A retry of a request that already has its grant. */
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
            /** @description The caller has its grant, or its task is parked, was notified, or has ended. */
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
            /** @description The key is not available. A newer request has replaced this one. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["LeaseHeld"] | components["schemas"]["Superseded"];
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
            /** @description The grant has ended, or is ending. */
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
            /** @description Whether the task or the call was in line. */
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
    capKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CapRequest"];
            };
        };
        responses: {
            /** @description The cap of the key from now on. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Capped"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
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
            /** @description The caller still holds the lease or the permit. */
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
    runNext: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunNextRequest"];
            };
        };
        responses: {
            /** @description Whether the task or the call was in line. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Moved"] | components["schemas"]["NotMoved"];
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
            /** @description Whether the caller held the lease or the permit. */
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
            /** @description Whether the request waited or had a grant. */
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
                 * @description The alias, as `name:branch`. A name alone means its branch `main`. Without an alias, the answer is a page of records.
                 * @example books
                 */
                alias?: string;
                /** @description The `nextCursor` of the page before, to read the next page. Not with `alias`. */
                cursor?: string;
                /** @description Only records of this kind. Not with `alias`. */
                kind?: "ledger" | "graph_source";
                /** @description The number of rows to list. The default is 100. Not with `alias`. */
                limit?: number;
                /** @description Only aliases that begin with this text. Not with `alias`. */
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
            /** @description The alias is up to date. */
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
            /** @description This call created the alias. */
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
    readOnce: {
        parameters: {
            query?: {
                /** @description The `nextCursor` of the page before, to read the next page. Not with `key`. */
                cursor?: string;
                /**
                 * @description The name of the work, such as `nightly-report`: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. Without a key, the answer is a page of keys.
                 * @example backup
                 */
                key?: string;
                /** @description The number of rows to list. The default is 100. Not with `key`. */
                limit?: number;
                /** @description Only keys that begin with this text. Not with `key`. */
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key, or the page. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OnceKey"] | components["schemas"]["OncePage"];
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
    onceBegin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OnceBeginRequest"];
            };
        };
        responses: {
            /** @description The grant, or the stored result of the slot, or which later slot is done. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OnceRun"] | components["schemas"]["OnceDone"] | components["schemas"]["OnceSuperseded"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The key is not available. The record is not in the expected state. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["LeaseHeld"] | components["schemas"]["Conflict"];
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
    onceComplete: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OnceCompleteRequest"];
            };
        };
        responses: {
            /** @description Whether the result of this caller is stored. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OnceCompleted"] | components["schemas"]["OnceNotCompleted"];
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
    onceForget: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OnceForgetRequest"];
            };
        };
        responses: {
            /** @description The key remembers no slot. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OnceForgotten"];
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
            /** @description The record is not in the expected state. The key is not available. */
            409: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Conflict"] | components["schemas"]["LeaseHeld"];
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
    readRates: {
        parameters: {
            query?: {
                /** @description The `nextCursor` of the page before, to read the next page. Not with `key`. */
                cursor?: string;
                /**
                 * @description The name of what the rate protects, such as an API: 1 to 1,010 bytes of UTF-8, not beginning with `holdfast:`. A lease with the same key is independent. Without a key, the answer is a page of keys.
                 * @example openai
                 */
                key?: string;
                /** @description The number of rows to list. The default is 100. Not with `key`. */
                limit?: number;
                /** @description Only keys that begin with this text. Not with `key`. */
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key, or the page. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RateKey"] | components["schemas"]["RatePage"];
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
    rateForget: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForgetRateRequest"];
            };
        };
        responses: {
            /** @description The reservations of the key are forgotten. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RateForgotten"];
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
    rateReserve: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReserveRequest"];
            };
        };
        responses: {
            /** @description A retry of a request that already has its start. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reserved"];
                };
            };
            /** @description The start is reserved. */
            201: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reserved"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["TooLarge"];
            /** @description The store is throttling requests. The rate is used up for longer than the call may wait. Too many tasks and callers wait. The API throttles requests. */
            429: {
                headers: {
                    "Holdfast-Version": components["headers"]["Version"];
                    /** @description After how many seconds a retry may succeed. `retryAfterMs` of the problem is more precise. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GatewayRefusal"];
                    "application/problem+json": components["schemas"]["Throttled"] | components["schemas"]["RateExceeded"] | components["schemas"]["QueueFull"];
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
    rateSettle: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SettleRequest"];
            };
        };
        responses: {
            /** @description Whether the reservation was changed. */
            200: {
                headers: {
                    /** @description Whether the answer may be cached. */
                    "Cache-Control"?: string;
                    "Holdfast-Version": components["headers"]["Version"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settled"] | components["schemas"]["ReservationCancelled"];
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
            /** @description Where to send the bytes. */
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
