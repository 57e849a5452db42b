/** Output of a turn: the listener, the counter of output items, and unique call ids. */
import type { ChatMessage, ToolLoopEvent, ToolLoopListener } from '#kernel'

export class TurnOutput {
  readonly #listener: ToolLoopListener
  readonly #callIds = new Set<string>()
  #indexes = 0
  #isSilent = false

  constructor(listener: ToolLoopListener) {
    this.#listener = listener
  }

  emit(event: ToolLoopEvent): void {
    if (!this.#isSilent) this.#listener.onEvent(event)
  }

  /** Emits the last event; later events are dropped. */
  end(event: ToolLoopEvent): void {
    if (this.#isSilent) return
    this.#isSilent = true
    this.#listener.onEvent(event)
  }

  silence(): void {
    this.#isSilent = true
  }

  get hasItems(): boolean {
    return this.#indexes > 0
  }

  /** Index of the next output item. */
  nextIndex(): number {
    return this.#indexes++
  }

  /** Returns a unique id: engines that number the calls of each answer repeat ids. */
  callId(modelId: string): string {
    let id = modelId
    for (let n = 2; this.#callIds.has(id); n++) id = `${modelId}_${n}`
    this.#callIds.add(id)
    return id
  }

  /** Reserves the ids of the history. */
  noteHistory(messages: readonly ChatMessage[]): void {
    for (const { tool_calls: calls } of messages) for (const { id } of calls ?? []) this.#callIds.add(id)
  }
}
