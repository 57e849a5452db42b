/** Finds configured parser names that nothing goes by, before any request does. */
import type { SettingProblem } from '#kernel'
import { HARMONY, TEMPLATE_FORMAT } from './choose-formats.ts'
import type { ParsersConfig } from './config.ts'
import { findToolFormat, toolFormats } from './formats/format-table.ts'
import { findReasoningFormat, hasNoReasoning, reasoningFormats } from './reasoning/reasoning-table.ts'

/** Read by what is known of a model, and by nothing else. */
const ofModel: ReadonlySet<string> = new Set([HARMONY, TEMPLATE_FORMAT])

export function* parserProblems({ toolParser, reasoningParser }: ParsersConfig): Generator<SettingProblem> {
  if (toolParser !== null && !ofModel.has(toolParser) && findToolFormat(toolParser) === undefined)
    yield { path: ['toolParser'], text: unknown('tool', toolParser, [...ofModel, ...namesOf(toolFormats)]) }
  if (reasoningParser === null || hasNoReasoning(reasoningParser) || ofModel.has(reasoningParser)) return
  if (findReasoningFormat(reasoningParser) === undefined)
    yield {
      path: ['reasoningParser'],
      text: unknown('reasoning', reasoningParser, [...ofModel, 'passthrough', ...namesOf(reasoningFormats)]),
    }
}

function namesOf(formats: readonly { readonly name: string }[]): string[] {
  return formats.map(({ name }) => name)
}

/** Only the first name of each: others go by more, such as those of engines' own flags. */
function unknown(kind: 'tool' | 'reasoning', given: string, names: readonly string[]): string {
  const list = [...new Set(names)].sort().join(', ')
  return `names no ${kind} parser, got ${JSON.stringify(given)}; there are ${list}`
}
