/** Whether a model thinks on a request, and whether its output begins inside reasoning. */
import type { ThinkingRequest, ThinkingState } from '#kernel'
import { reasoningFormats } from './reasoning/reasoning-table.ts'

/** Output formats whose prompts the gateway writes, with their toggles. */
const NATIVE: ReadonlyMap<string, { readonly isOnByDefault: boolean }> = new Map([
  ['deepseek32', { isOnByDefault: false }],
  ['deepseek_v4', { isOnByDefault: false }],
  ['deepseek_v41', { isOnByDefault: false }],
  ['kimi_k3', { isOnByDefault: true }],
])

const OFF_EFFORTS = new Set(['none', 'minimal'])

/** @param toolParser the format in use, for models without a chat template */
export function thinkingOf(request: ThinkingRequest, toolParser: string | null): ThinkingState {
  const { chatTemplate, prompt, continued = null } = request
  const native = toolParser === null ? undefined : NATIVE.get(toolParser)
  const toggle = native === undefined ? toggleOf(chatTemplate ?? '') : { key: 'thinking', ...native }
  // The end of the prompt is known; the default of a template is a guess.
  const left = prompt === undefined ? null : isReasoningLeftOpen(prompt, continued)
  if (toggle === null) return { key: null, requested: null, isOn: false, isReasoningOpen: left }
  const { key, isOnByDefault } = toggle
  const requested = requestedIn(request, key)
  const isOn = left ?? requested ?? isOnByDefault
  return {
    key,
    requested,
    isOn,
    isReasoningOpen: isOn ? (left ?? (native === undefined ? null : true)) : false,
  }
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
function requestedIn(request: ThinkingRequest, key: string): boolean | null {
  const { templateArguments, reasoningEffort } = request
  if (templateArguments !== undefined && Object.hasOwn(templateArguments, key)) {
    const value = templateArguments[key]
    if (typeof value === 'boolean') return value
  }
  return typeof reasoningEffort === 'string' && OFF_EFFORTS.has(reasoningEffort) ? false : null
}

/** Longer than any mark, and the space behind it. */
const TAIL_LENGTH = 256

const THINK = /<(\/?)think(?::[\w-]{1,64})?>$/
/** In formats without two marks: what begins the reasoning, and what begins the answer instead. */
const OTHER_MARKS = [
  { start: '<|open|>think<|sep|>', end: '<|open|>response<|sep|>' },
  { start: '<|content_thinking|>', end: '<|content_text|>' },
]
const marks = reasoningFormats
  .flatMap(({ marks }) => marks ?? [])
  .concat(OTHER_MARKS)
  .map(({ start, end }) => ({ start: start.trimEnd(), end: end.trimEnd() }))

/**
 * Marks in earlier messages do not count: only those of the continued text, else that which the template wrote before it.
 * @param continued text with which the prompt ends, except for white space around it
 */
function isReasoningLeftOpen(prompt: string, continued: string | null): boolean | null {
  if (continued === null) return isReasoningOpenAfter(prompt)
  const at = prompt.lastIndexOf(continued.trim())
  return isReasoningOpenIn(continued) ?? isReasoningOpenAfter(at < 0 ? prompt : prompt.slice(0, at)) ?? false
}

/** Whether the last mark of reasoning in the text opens it; null if there is none. */
function isReasoningOpenIn(text: string): boolean | null {
  let [start, end] = [-1, -1]
  for (const found of text.matchAll(/<(\/?)think(?::[\w-]{1,64})?>/g))
    if (found[1] === '') start = found.index
    else end = found.index
  for (const mark of marks) {
    start = Math.max(start, text.lastIndexOf(mark.start))
    end = Math.max(end, text.lastIndexOf(mark.end))
  }
  return start === end ? null : start > end
}

/** Whether the prompt ends inside reasoning (true) or behind it (false); null if unknown. */
export function isReasoningOpenAfter(prompt: string): boolean | null {
  const tail = prompt.slice(-TAIL_LENGTH).trimEnd()
  const think = THINK.exec(tail)
  if (think !== null) return think[1] === ''
  const found = marks.find(({ start, end }) => tail.endsWith(start) || tail.endsWith(end))
  return found === undefined ? null : tail.endsWith(found.start)
}
