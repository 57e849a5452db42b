/** Calls that nobody runs and no client sees: what the model is told in place of a result. */
import type { ModelCall } from './model-call.ts'
import type { ToolAnswer } from './turn-messages.ts'

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
