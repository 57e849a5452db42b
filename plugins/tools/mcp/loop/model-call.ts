/** One call that a model makes, while it is being written and after. */
import type { NativeAnswer } from '#kernel'
import type { OfferedTool } from './offered-tools.ts'

/**
 * Who answers it. `function`: the client. `gateway`: we do. `approval`: we do, once a person agrees. `refused`: nobody; it
 * is shown to no client, and the model is told why.
 */
export type CallRoute =
  | { readonly kind: 'function' }
  | { readonly kind: 'gateway' | 'approval'; readonly tool: OfferedTool }
  | { readonly kind: 'refused'; readonly reason: 'unknown' | 'limit' | 'approval' }

export interface ModelCall {
  /** As the model wrote it; made different from those of the turn so far. */
  readonly id: string
  /** As the model wrote it. */
  readonly name: string
  readonly route: CallRoute
  /** Null for calls that clients do not see, and for approvals until they are asked for. */
  index: number | null
  argumentText: string
  isWhole: boolean
}

/** What a model said in one iteration. */
export interface ModelTurn {
  readonly text: string
  readonly refusal: string
  readonly reasoning: string
  readonly signature: string | null
  readonly calls: readonly ModelCall[]
  /** Null unless its worker has told it in its own words too. */
  readonly native: NativeAnswer | null
}
