// Written by `npm run verify -- cdk-types`.

/** The parameters of the template. A parameter that you leave out has its default. */
export interface HoldfastParameters {
  /** The name of this deployment. It is part of the name of every resource, so it can never change. At most 14 characters fit in every region. */
  readonly stage: string;
  /** The fixed parameters and limits that this update may change, each with its new value, such as leasesTable=my-leases, separated by spaces. */
  readonly allowChange?: string;
  /** How callers of every route sign: with IAM, or with a JWT. @default iam */
  readonly auth?: 'iam' | 'jwt';
  /** auth=jwt: the URL of the issuer of the tokens. */
  readonly jwtIssuer?: string;
  /** auth=jwt: the audiences, with commas between them. A token must name one of them. */
  readonly jwtAudience?: string;
  /** auth=jwt: the claim that names the namespaces of a caller, as a text for one or as a list for several. @default holdfast_namespace */
  readonly jwtNamespaceClaim?: string;
  /** auth=jwt: the scope that the routes without a namespace need. @default holdfast/admin */
  readonly adminScope?: string;
  /** auth=jwt: the scope that the leases of a namespace need. @default holdfast/leases */
  readonly leasesScope?: string;
  /** auth=jwt: the scope that the commits of a namespace need. @default holdfast/commits */
  readonly commitsScope?: string;
  /** auth=jwt: the scope that the nameservice of a namespace needs. @default holdfast/names */
  readonly namesScope?: string;
  /** auth=jwt: the scope that the expired records of a namespace need. @default holdfast/expired */
  readonly expiredScope?: string;
  /** auth=jwt: the scope that break, cancel, cap, next and forget need. @default holdfast/leases.break */
  readonly breakScope?: string;
  /** auth=jwt: the scope that resetFence needs. @default holdfast/commits.repair */
  readonly resetFenceScope?: string;
  /** auth=jwt: the scope that clean needs. @default holdfast/expired.clean */
  readonly cleanScope?: string;
  /** auth=jwt: the scope that repair of the nameservice needs. @default holdfast/names.repair */
  readonly repairScope?: string;
  /** The namespaces of Step Functions tasks, at most eight, with commas between them. Each gets an alias on the functions that tasks call, and its own state machine exclusive. */
  readonly namespaces?: string;
  /** The names of the state machines that exclusive may start, at most eight, with commas between them. * and ? are wildcards. Empty: none. */
  readonly exclusiveTargets?: string;
  /** An existing table to use for leases and permits. Empty: the stack creates holdfast-<stage>-leases. */
  readonly leasesTable?: string;
  /** An existing table to use for waiters. Empty: the stack creates holdfast-<stage>-waiters. */
  readonly waitersTable?: string;
  /** An existing table to use for commits. Empty: the stack creates holdfast-<stage>-commits. */
  readonly commitsTable?: string;
  /** An existing table to use for the nameservice. Empty: the stack creates holdfast-<stage>-nameservice. */
  readonly nameserviceTable?: string;
  /** An existing bucket to use. Empty: the stack creates holdfast-<stage>-<account>-<region>. */
  readonly bucket?: string;
  /** Whether DynamoDB refuses to delete the tables that this stack creates. pending: the deploy command sets true as its last step. @default true */
  readonly deletionProtection?: boolean;
  /** After how many days S3 deletes a version of an object that a commit has replaced. Empty: never. */
  readonly noncurrentVersionDays?: string;
  /** How far clocks may differ, in milliseconds. An expired lease stays protected for this long. @default 500 */
  readonly clockSkewMs?: number;
  /** The longest wait of a call, in seconds. A longer waitSeconds is cut to this. @default 20 */
  readonly maxWaitSeconds?: number;
  /** How many waiting calls the service holds at once, each in its own Lambda environment. 0: none. @default 100 */
  readonly maxHeldCalls?: number;
  /** How many tasks and calls may be in line for a key. @default 10000 */
  readonly maxWaitersPerKey?: number;
  /** How many tasks and calls may be in line in a namespace. They are counted once a minute. @default 100000 */
  readonly maxWaitersPerNamespace?: number;
  /** An alarm fires if a namespace holds more leases and permits than this. @default 10000 */
  readonly maxLeasesPerNamespace?: number;
  /** How long a released record stays before DynamoDB's TTL may delete it, in seconds. @default 3600 */
  readonly fenceRetentionSeconds?: number;
  /** Reserved concurrency of acquire. 0 stops acquire. */
  readonly acquireConcurrency?: number;
  /** true: acquire, onceBegin and rateReserve do not run, so that no work begins. All other calls still run, such as heartbeat and release. @default false */
  readonly drained?: boolean;
  /** Reserved concurrency of heartbeat. */
  readonly heartbeatConcurrency?: number;
  /** Reserved concurrency of release. */
  readonly releaseConcurrency?: number;
  /** own: callers of a namespace may name only executions of state machines whose names begin with the namespace and a hyphen. any: executions of all state machines. auto: own if the parameter namespaces is set, and any otherwise. @default auto */
  readonly namespaceExecutions?: 'auto' | 'any' | 'own';
  /** The name of the state machines whose executions may hold leases. * is a wildcard. The functions do not get access to other executions. @default * */
  readonly executionStateMachines?: string;
  /** The name of the durable functions whose callbacks may wait for leases, and whose executions may hold them. * is a wildcard. Do not name functions that use callbacks for approvals. Empty: none. */
  readonly durableFunctions?: string;
  /** Whether events free the leases of executions that end. DISABLED: these leases stay until they expire. @default ENABLED */
  readonly executionEvents?: 'ENABLED' | 'DISABLED';
  /** dynamo: shares the commits table with writers of object_store. native: relies on S3 alone. @default dynamo */
  readonly commitProtocol?: 'dynamo' | 'native';
  /** How long the record of an interrupted commit blocks third-party writers, in milliseconds. All of them need the same value. @default 20000 */
  readonly commitTimeoutMs?: number;
  /** The record of a third-party client can be taken over after its timeout, multiplied by this number. @default 3 */
  readonly maxClockSkewRate?: number;
  /** How long a commit record stays before DynamoDB's TTL may delete it, in seconds. @default 3600 */
  readonly commitTtlSeconds?: number;
  /** The largest upload that can be committed, in MiB, at most 5120. @default 1024 */
  readonly maxUploadMib?: number;
  /** Staged uploads of more than this many MiB are copied in parts. @default 256 */
  readonly multipartThresholdMib?: number;
  /** The size of the parts in which a large staged upload is copied, in MiB. @default 64 */
  readonly multipartPartMib?: number;
  /** The attribute in which the table keeps addresses of commits and indexes. id: for tables of public Fluree 4. @default address */
  readonly pointerAttributes?: 'address' | 'id';
  /** How often EventBridge starts a report. @default rate(15 minutes) */
  readonly reportSchedule?: string;
  /** The most read units that a report uses in a second. 0: no limit. @default 500 */
  readonly reportReadUnitsPerSecond?: number;
  /** How many segments of each table a report scans at once, at most 64. @default 4 */
  readonly reportSegments?: number;
  /** A report that is not complete after this many hours starts again. @default 24 */
  readonly reportGiveUpHours?: number;
  /** An alarm fires if no report has been complete for this many seconds. @default 3600 */
  readonly reportOverdueSeconds?: number;
  /** true: a clean-up follows each report. @default false */
  readonly autoClean?: boolean;
  /** How long ago a record must have expired before the automatic clean-up deletes it, in seconds. @default 86400 */
  readonly autoCleanOlderThanSeconds?: number;
  /** The memory of each function, in MB. @default 512 */
  readonly memoryMb?: number;
  /** The log level of the functions. @default INFO */
  readonly logLevel?: 'DEBUG' | 'INFO' | 'WARN' | 'ERROR' | 'SILENT';
  /** How many days every log group keeps its lines. @default 30 */
  readonly logRetentionDays?: number;
  /** essential: the alarms that page, because callers are refused or wait. all: also the alarms that can wait for a day. CloudWatch charges $0.10 a month for each metric of an alarm. @default essential */
  readonly alarms?: 'all' | 'essential' | 'none';
  /** An SNS topic that the alarms notify. */
  readonly alarmTopicArn?: string;
  /** An SNS topic for the alarms that can wait for a day. Empty: alarmTopicArn. */
  readonly ticketTopicArn?: string;
  /** An alarm fires if a task or a call is in line for longer than this many seconds. @default 14400 */
  readonly waiterOverdueSeconds?: number;
  /** ENABLED: if a task or a call is in line for longer than waiterOverdueSeconds, the default event bus receives an event Lease Waited, and another one after each further period. @default DISABLED */
  readonly events?: 'ENABLED' | 'DISABLED';
  /** The URL of a copy of docs/operations.md, so that each alarm can link its section. Empty: alarms only name the section. */
  readonly runbookUrl?: string;
  /** A managed policy that becomes the permissions boundary of every role of the stack. */
  readonly permissionsBoundaryArn?: string;
  /** A KMS key for the tables, the log groups, the queues and the environment of the functions. The bucket has its own. */
  readonly kmsKeyArn?: string;
  /** A KMS key for the bucket that this stack creates. ETags are then no longer the MD5 of the bytes. */
  readonly bucketKmsKeyArn?: string;
  /** Subnets of a VPC that the functions run in, with commas between them. */
  readonly vpcSubnetIds?: string;
  /** Security groups of the functions in these subnets. */
  readonly vpcSecurityGroupIds?: string;
  /** Active: the functions and the wrappers exclusive send traces to X-Ray. @default PassThrough */
  readonly tracing?: 'PassThrough' | 'Active';
  /** JSON: Lambda writes its own log lines as JSON too. The lines of Holdfast are JSON either way. @default Text */
  readonly logFormat?: 'Text' | 'JSON';
  /** Whether API Gateway logs each request, without its body. @default true */
  readonly accessLogs?: boolean;
  /** Whether the stack has a CloudWatch dashboard. Each dashboard after the third of an account costs $3 a month. @default true */
  readonly dashboard?: boolean;
  /** Requests a second that API Gateway accepts on each route. @default 2000 */
  readonly throttlingRate?: number;
  /** Requests at once that API Gateway accepts on each route. @default 1000 */
  readonly throttlingBurst?: number;
  /** Whether API Gateway limits each route that lists leases, keys of once or rates, commits in flight or expired records to 200 requests a second and 200 at once, because their scans use the capacity of the tables. @default true */
  readonly throttleLists?: boolean;
  /** An SNS topic that is notified when an alarm ends. */
  readonly alarmOkTopicArn?: string;
  /** Your own domain for the API. */
  readonly domainName?: string;
  /** true: the API answers only under domainName, and no longer under the name that AWS gives it. @default false */
  readonly disableExecuteApiEndpoint?: boolean;
  /** The certificate of domainName, in this region. */
  readonly certificateArn?: string;
  /** The Route 53 hosted zone in which the stack creates the record of domainName. */
  readonly hostedZoneId?: string;
}
