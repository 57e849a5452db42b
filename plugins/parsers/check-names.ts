/** Refuses configured parser names that nothing goes by, before any request does. */

import { HARMONY } from './choose-formats.ts'
import type { ParsersConfig } from './config.ts'
import { findToolFormat } from './formats/format-table.ts'
import { findReasoningFormat } from './reasoning/reasoning-table.ts'

export function checkParserNames({ toolParser, reasoningParser }: ParsersConfig): void {
  if (toolParser !== null && toolParser !== HARMONY && findToolFormat(toolParser) === undefined)
    throw new TypeError(`plugins.parsers.toolParser: there is no tool parser named '${toolParser}'`)
  if (reasoningParser === null || reasoningParser === 'passthrough' || reasoningParser === HARMONY) return
  if (findReasoningFormat(reasoningParser) === undefined)
    throw new TypeError(
      `plugins.parsers.reasoningParser: there is no reasoning parser named '${reasoningParser}'`,
    )
}
