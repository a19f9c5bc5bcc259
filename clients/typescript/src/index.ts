export type { AcquireOptions, LockOptions, PermitOptions } from './acquire.ts';
export type { CallOptions } from './attempt.ts';
export type { Content, Upload } from './content.ts';
export type { components } from './contract.ts';
export {
  type ErrorCode,
  type ErrorFields,
  HoldfastError,
  isHoldfastError,
  type LossReason,
  refusal,
  unreachable,
} from './errors.ts';
export type { HoldfastEvent } from './events.ts';
export { Holdfast } from './holdfast.ts';
export type { HttpOptions } from './http.ts';
/** @internal */
export * from './internal.ts';
export type { LeadOptions } from './lead.ts';
export type { Lease, LeaseOptions } from './lease.ts';
export type { OnceAnswer, OnceOptions, OnceRun, SlotOptions } from './once.ts';
export type { Rate, RateOptions, RateStart, RatesOptions, RateTerms } from './rate.ts';
export type { CommitRequest, FromEnvOptions, HoldfastOptions } from './requests.ts';
export type { LeaseEntry, Leases, LeasesOptions } from './several.ts';
export type { Credentials } from './sigv4.ts';
export type { Moment, Surroundings } from './surroundings.ts';
export { type AnswerOf, type Operation, problemOf, type RequestOf, type Transport } from './transport.ts';
export type { OnHeldOptions, Work } from './work.ts';
