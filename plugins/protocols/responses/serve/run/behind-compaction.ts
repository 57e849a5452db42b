/** Events of a turn whose output begins with a summary: every index is one more, and what the summary took is counted in. */
import type { GenerationUsage, ToolLoopEvent } from '#kernel'
import type { Compaction } from './plan.ts'

export function behindCompaction(
  { usage }: Compaction,
  onEvent: (event: ToolLoopEvent) => void,
): (event: ToolLoopEvent) => void {
  return (event) => {
    if (event.type === 'finished' || event.type === 'failed')
      onEvent({ ...event, usage: sumOf(event.usage, usage) })
    else onEvent('index' in event ? { ...event, index: event.index + 1 } : event)
  }
}

export function sumOf(one: GenerationUsage | null, two: GenerationUsage | null): GenerationUsage | null {
  if (one === null || two === null) return one ?? two
  return {
    inputTokens: one.inputTokens + two.inputTokens,
    cachedTokens: one.cachedTokens + two.cachedTokens,
    cacheWriteTokens: one.cacheWriteTokens + two.cacheWriteTokens,
    outputTokens: one.outputTokens + two.outputTokens,
    reasoningTokens: one.reasoningTokens + two.reasoningTokens,
  }
}
