/** What every item under way can do. @source responses facts 3.3 */
import type { HistoryItem, ToolLoopEvent } from '#kernel'

export interface OpenItem {
  begin(): void
  add(event: ToolLoopEvent): void
  end(event: ToolLoopEvent): HistoryItem
  /** Of an answer that broke off. */
  asFarAsItCame(): HistoryItem
}
