/** Whether a model thinks on a request, and where its output begins then. */
import type { ThinkingRequest, ThinkingState } from '#kernel'
import { isReasoningOpenAfter } from './prompt-end.ts'

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
  const { chatTemplate, prompt } = request
  const native = toolParser === null ? undefined : NATIVE.get(toolParser)
  const toggle = native === undefined ? toggleOf(chatTemplate ?? '') : { key: 'thinking', ...native }
  // How a prompt ends is certain; what a template does when nobody asks is a guess.
  const left = prompt === undefined ? null : isReasoningOpenAfter(prompt)
  if (toggle === null) return { key: null, wish: null, isOn: false, isReasoningOpen: left }
  const { key, isOnByDefault } = toggle
  const wish = wishOf(request, key)
  const isOn = left ?? wish ?? isOnByDefault
  return { key, wish, isOn, isReasoningOpen: isOn ? (left ?? (native === undefined ? null : true)) : false }
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

/** An explicit toggle wins over an effort; null without either. */
function wishOf(request: ThinkingRequest, key: string): boolean | null {
  const { templateArguments, reasoningEffort } = request
  if (templateArguments !== undefined && Object.hasOwn(templateArguments, key)) {
    const value = templateArguments[key]
    if (typeof value === 'boolean') return value
  }
  return typeof reasoningEffort === 'string' && OFF_EFFORTS.has(reasoningEffort) ? false : null
}
