/** The wish for reasoning in the words of the format. */
import type { GenerationRequest, ReasoningWish } from '#kernel'
import type { Json } from './wire.ts'

const MIN_BUDGET = 1_024
/** Efforts of the chat format that this one has no word for. */
const EFFORTS: ReadonlyMap<string, string> = new Map([['minimal', 'low']])

/** Sets `thinking` and `output_config.effort`; thinking does not go with a forced call or a temperature. */
export function addReasoning(body: Json, request: GenerationRequest): void {
  const { toolChoice, sampling } = request
  const reasoning = wishOf(request)
  if (reasoning === null) return
  const { isEnabled, effort, budgetTokens } = reasoning
  if (isEnabled === false || effort === 'none') {
    body.thinking = { type: 'disabled' }
    return
  }
  if (effort !== undefined) body.output_config = { effort: EFFORTS.get(effort) ?? effort }
  const isForced =
    toolChoice !== null &&
    (toolChoice.mode === 'required' ||
      toolChoice.mode === 'function' ||
      (toolChoice.mode === 'allowed' && toolChoice.isRequired))
  if (isForced || (isEnabled !== true && budgetTokens === undefined)) return
  const thinking = toThinking(budgetTokens, body.max_tokens as number)
  if (thinking === null) return
  body.thinking = thinking
  if (sampling.temperature !== undefined) delete body.temperature
}

/** Clients of chat say it to the template, since their format has no word for it. */
function wishOf({ reasoning, templateArguments }: GenerationRequest): ReasoningWish | null {
  const told = templateArguments?.enable_thinking ?? templateArguments?.thinking
  return reasoning?.isEnabled !== undefined || typeof told !== 'boolean'
    ? reasoning
    : { ...reasoning, isEnabled: told }
}

/** @returns null where the limit of the output leaves no room for thinking */
function toThinking(budgetTokens: number | undefined, maxTokens: number): Json | null {
  if (budgetTokens === undefined) return { type: 'adaptive' }
  if (maxTokens <= MIN_BUDGET) return null
  const budget = Math.min(Math.max(budgetTokens, MIN_BUDGET), maxTokens - 1)
  return { type: 'enabled', budget_tokens: budget }
}
