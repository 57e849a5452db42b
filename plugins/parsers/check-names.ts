/** Finds configured parser names that nothing goes by, before any request does. */
import type { SettingProblem } from '#kernel'
import { HARMONY } from './choose-formats.ts'
import type { ParsersConfig } from './config.ts'
import { findToolFormat } from './formats/format-table.ts'
import { findReasoningFormat, hasNoReasoning } from './reasoning/reasoning-table.ts'

export function* parserProblems({ toolParser, reasoningParser }: ParsersConfig): Generator<SettingProblem> {
  if (toolParser !== null && toolParser !== HARMONY && findToolFormat(toolParser) === undefined)
    yield { path: ['toolParser'], text: `names no tool parser, got ${JSON.stringify(toolParser)}` }
  if (reasoningParser === null || hasNoReasoning(reasoningParser) || reasoningParser === HARMONY) return
  if (findReasoningFormat(reasoningParser) === undefined)
    yield {
      path: ['reasoningParser'],
      text: `names no reasoning parser, got ${JSON.stringify(reasoningParser)}`,
    }
}
