/**
 * The conditions that make a write a rule. Attribute names that are DynamoDB reserved words never appear here
 * (`key`, `data`), so no condition needs aliases.
 */
export const isHeld = 'attribute_exists(lease_version)';

/** `:seen` is the version on a record that was read: nobody has extended, ended or taken the lease since. */
export const isStillHeld = 'lease_version = :seen';
export const isStillFree = 'attribute_not_exists(lease_version)';

/** A request id stands for one acquisition: a late duplicate of one that was released must not lease again. */
export const isFree = 'attribute_not_exists(lease_version) AND NOT (request_id = :request AND holder = :holder)';

/** The second half is for records of the Rust crate, which know whole seconds only. */
export const isExpired =
  'attribute_exists(lease_version) AND (expires_at < :cut OR (attribute_not_exists(expires_at) AND lease_expiry < :cutSeconds))';

export const fenceRises = 'attribute_not_exists(fence) OR fence < :fence';

/** While anybody is parked for the key, only the queue grants it. */
export const isUnmarked = 'attribute_not_exists(waiters)';

export const isOurs = 'lease_id = :leaseId';

export const hasFence = 'fence = :fence';

/** A heartbeat never shortens a lease, so a delayed duplicate of an earlier one changes nothing. */
export const isLater = 'expires_at < :expires';

/** The same for a heartbeat that keeps the ttl: of two expiries with one ttl, the later beat has the later one. */
export const isLaterBeat = 'heartbeat_at < :now';
