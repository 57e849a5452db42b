/** Whether a model thinks on a request, and where its output begins then. @source parsers facts 2.17 */
import type { ThinkingRequest, ThinkingState } from '#contracts'

/** Output formats whose prompts are written by the gateway, with their toggles. */
const NATIVE: ReadonlyMap<string, { readonly isOnByDefault: boolean }> = new Map([
  ['deepseek32', { isOnByDefault: false }],
  ['deepseek_v4', { isOnByDefault: false }],
  ['deepseek_v41', { isOnByDefault: false }],
  ['kimi_k3', { isOnByDefault: true }],
])

const OFF_EFFORTS = new Set(['none', 'minimal'])

/** @param toolParser the format in use, for models whose prompt no template writes */
export function thinkingOf(request: ThinkingRequest, toolParser: string | null): ThinkingState {
  const template = request.chatTemplate ?? ''
  const native = toolParser === null ? undefined : NATIVE.get(toolParser)
  const toggle = native === undefined ? toggleOf(template) : { key: 'thinking', ...native }
  if (toggle === null) return { key: null, isOn: false, isReasoningOpen: null }
  const { key, isOnByDefault } = toggle
  const wish = wishOf(request, key)
  const isOn = wish ?? isOnByDefault
  // A template that opens the tag itself leaves no beginning for the model to write.
  const isOpened = native !== undefined || opensReasoning(template)
  return { key, isOn, isReasoningOpen: isOn ? isOpened || null : false }
}

interface Toggle {
  readonly key: string
  readonly isOnByDefault: boolean
}

function toggleOf(template: string): Toggle | null {
  const key = template.includes('enable_thinking')
    ? 'enable_thinking'
    : /(?:if|set|elif|not|and|or)\s+thinking\b/.test(template)
      ? 'thinking'
      : null
  if (key === null) return null
  return { key, isOnByDefault: !new RegExp(`set\\s+${key}\\s*=\\s*false`, 'i').test(template) }
}

/** An explicit toggle wins over an effort; undefined without either. */
function wishOf(request: ThinkingRequest, key: string): boolean | undefined {
  const { templateArguments, reasoningEffort } = request
  if (templateArguments !== undefined && Object.hasOwn(templateArguments, key)) {
    const value = templateArguments[key]
    if (typeof value === 'boolean') return value
  }
  return typeof reasoningEffort === 'string' && OFF_EFFORTS.has(reasoningEffort) ? false : undefined
}

/** The tag stands in what the template writes for the model to go on from. */
function opensReasoning(template: string): boolean {
  const prompt = template.lastIndexOf('add_generation_prompt')
  if (prompt < 0) return false
  return /<think>(?!\s*(?:\\n)*\s*<\/think>)/.test(template.slice(prompt))
}
