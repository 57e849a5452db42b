/** What every item under way can do. */
import type { HistoryItem, ToolLoopEvent } from '#kernel'

export interface OpenItem {
  begin(): void
  add(event: ToolLoopEvent): void
  end(event: ToolLoopEvent): HistoryItem
  /** Of an answer that broke off. */
  asFarAsItCame(): HistoryItem
}
