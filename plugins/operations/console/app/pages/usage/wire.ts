/** What the page reads of the usage routes; see the HTTP API reference. */
export const GROUPS = ['day', 'tenant', 'key', 'model'] as const
export type Group = (typeof GROUPS)[number]

export interface Amounts {
  readonly requests: number
  /** Cached ones included. */
  readonly input_tokens: number
  readonly cached_tokens: number
  /** Reasoning included. */
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly cost: number
}

export type UsageRow = Amounts & { readonly [group in Group]?: string | null }

export interface Report {
  readonly from: string
  readonly to: string
  readonly data: readonly UsageRow[]
  readonly total: Amounts
}

export interface Budget {
  readonly tenant: string
  /** Null for all keys of the tenant. */
  readonly key: string | null
  readonly period: string
  readonly unit: 'cost' | 'tokens'
  readonly limit: number
  readonly used: number
  readonly left: number
  /** ISO 8601. */
  readonly ends_at: string
}
