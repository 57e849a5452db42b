/** A call of a model, and the result of a call that is not run. */
import type { NativeAnswer, NativeObject } from '#kernel'
import type { OfferedTool } from './offered-tools.ts'

/**
 * Who runs the call. `function`: the client. `gateway`: the gateway. `approval`: the gateway after approval. `refused`: the
 * call is not run and hidden from clients; the model receives the reason.
 */
export type CallRoute =
  | { readonly kind: 'function' }
  | { readonly kind: 'gateway' | 'approval'; readonly tool: OfferedTool }
  | { readonly kind: 'refused'; readonly reason: 'unknown' | 'limit' | 'approval' }

export interface ModelCall {
  /** Id from the model, made unique within the turn. */
  readonly id: string
  /** As the model wrote it. */
  readonly name: string
  readonly route: CallRoute
  /** Index of the output item; null for calls hidden from clients, and for approvals before they are requested. */
  index: number | null
  argumentText: string
  isWhole: boolean
  /** As of the generation's event. */
  members: NativeObject | undefined
  /** As of the generation's event. */
  readonly extraContent: NativeObject | undefined
}

/** Output of the model in one iteration. */
export interface ModelTurn {
  readonly text: string
  readonly refusal: string
  readonly reasoning: string
  readonly signature: string | null
  readonly calls: readonly ModelCall[]
  /** The answer in the worker's own format; null if the worker does not provide it. */
  readonly native: NativeAnswer | null
  /** As of the event of the end. */
  readonly extraContent: NativeObject | undefined
}

/** Result of one call, as the model receives it. */
export interface ToolAnswer {
  readonly callId: string
  readonly text: string
  readonly isError: boolean
  readonly images: readonly { readonly mimeType: string; readonly data: string }[]
}

export const LIMIT_REACHED = 'The limit of tool calls for this request is reached. Answer with what you know.'
export const TOOL_NOT_AVAILABLE = 'This tool is no longer available.'
const NO_APPROVAL = "This tool needs a person's approval, which this client cannot give."
const MAX_NAME = 128

export function refuse(callId: string, text: string): ToolAnswer {
  return { callId, text, isError: true, images: [] }
}

/** Result for a refused call; null for other calls. */
export function refusalOf({ id, name, route }: ModelCall): ToolAnswer | null {
  if (route.kind !== 'refused') return null
  if (route.reason === 'limit') return refuse(id, LIMIT_REACHED)
  return refuse(
    id,
    route.reason === 'approval' ? NO_APPROVAL : `There is no tool named ${name.slice(0, MAX_NAME)}.`,
  )
}
