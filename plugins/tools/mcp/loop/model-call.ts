/** One call that a model makes, and the result of a call that is not run. */
import type { NativeAnswer } from '#kernel'
import type { OfferedTool } from './offered-tools.ts'
import type { ToolAnswer } from './turn-messages.ts'

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

export const LIMIT_REACHED = 'The limit of tool calls for this request is reached. Answer with what you know.'
export const TOOL_IS_GONE = 'This tool is no longer available.'
const NO_APPROVAL = "This tool needs a person's approval, which this client cannot give."
const MAX_NAME = 128

export function refuse(callId: string, text: string): ToolAnswer {
  return { callId, text, isError: true, images: [] }
}

/** Null for calls that somebody answers. */
export function refusalOf({ id, name, route }: ModelCall): ToolAnswer | null {
  if (route.kind !== 'refused') return null
  if (route.reason === 'limit') return refuse(id, LIMIT_REACHED)
  return refuse(
    id,
    route.reason === 'approval' ? NO_APPROVAL : `There is no tool named ${name.slice(0, MAX_NAME)}.`,
  )
}
