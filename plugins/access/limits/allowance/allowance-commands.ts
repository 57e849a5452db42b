/** What data threads know of shared limits, and what they ask control. */
import { defineCommand, defineReplica } from '#kernel'
import type { TokenNeed } from './allowance.ts'
import type { BucketFacts } from './shared-bucket.ts'

/** Which limits are taken from grants. */
export interface LimitSharing {
  /** Limit of `/ha/rate-limit`; null without one. */
  readonly globalPerSecond: number | null
  /** Tenant limits and `requestsPerSecond` are those of all gateways together. */
  readonly isShared: boolean
}

export const LimitSharingReplica = defineReplica<LimitSharing>('limits.sharing', {
  globalPerSecond: null,
  isShared: false,
})
/** Resolves when the engine has been asked, or is known to be away. */
export const AskTokens = defineCommand<readonly TokenNeed[], void>('limits.ask-tokens')
/** Tokens left over all gateways; null while the engine is away. */
export const ReadTokens = defineCommand<readonly BucketFacts[], readonly number[] | null>(
  'limits.read-tokens',
)
