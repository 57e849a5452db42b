/** Whether the end of a prompt leaves the model inside of reasoning. */
import { reasoningFormats } from './reasoning/reasoning-table.ts'

/** Longer than any mark, and the space behind it. */
const TAIL_LENGTH = 256

const THINK = /<(\/?)think(?::[\w-]{1,64})?>$/
/** In formats without two marks: what opens the reasoning, and what opens the answer in its place. */
const OTHER_MARKS = [
  { start: '<|open|>think<|sep|>', end: '<|open|>response<|sep|>' },
  { start: '<|content_thinking|>', end: '<|content_text|>' },
]
const marks = reasoningFormats
  .flatMap(({ marks }) => marks ?? [])
  .concat(OTHER_MARKS)
  .map(({ start, end }) => ({ start: start.trimEnd(), end: end.trimEnd() }))

/** True inside of it, false behind it, null where the prompt says nothing. */
export function isReasoningOpenAfter(prompt: string): boolean | null {
  const tail = prompt.slice(-TAIL_LENGTH).trimEnd()
  const think = THINK.exec(tail)
  if (think !== null) return think[1] === ''
  const found = marks.find(({ start, end }) => tail.endsWith(start) || tail.endsWith(end))
  return found === undefined ? null : tail.endsWith(found.start)
}
