/** Separates the reasoning of a whole text from its answer. */
import type { ReasoningSink } from './reasoning/reasoning-reader.ts'
import type { ReasoningFormat } from './reasoning/reasoning-table.ts'

export interface ParsedReasoning {
  readonly reasoning: string
  readonly text: string
}

/** @param isInside the prompt ended inside of reasoning; undefined: as the format says */
export function parseReasoning(format: ReasoningFormat, text: string, isInside?: boolean): ParsedReasoning {
  const reasoning: string[] = []
  const answer: string[] = []
  const sink: ReasoningSink = { reasoning: (part) => reasoning.push(part), text: (part) => answer.push(part) }
  const reader = format.open(sink, { isInside, isWhole: true })
  reader.push(text)
  reader.end()
  return { reasoning: reasoning.join(''), text: answer.join('') }
}
