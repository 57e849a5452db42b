/** What all parts of a turn share when they speak: one listener, one counter of items, ids that no two calls have. */
import type { ChatMessage, ToolLoopEvent, ToolLoopListener } from '#kernel'

export class TurnOutput {
  readonly #listener: ToolLoopListener
  readonly #callIds = new Set<string>()
  #indexes = 0
  #isSilent = false

  constructor(listener: ToolLoopListener) {
    this.#listener = listener
  }

  readonly emit = (event: ToolLoopEvent): void => {
    if (!this.#isSilent) this.#listener.onEvent(event)
  }

  /** The last event; nothing is heard after it. */
  end(event: ToolLoopEvent): void {
    if (this.#isSilent) return
    this.#isSilent = true
    this.#listener.onEvent(event)
  }

  silence(): void {
    this.#isSilent = true
  }

  /** The number of the next output item. */
  readonly nextIndex = (): number => this.#indexes++

  /** Engines that count their calls anew in each answer repeat ids. */
  readonly callId = (wanted: string): string => {
    let id = wanted
    for (let n = 2; this.#callIds.has(id); n++) id = `${wanted}_${n}`
    this.#callIds.add(id)
    return id
  }

  /** Ids of the history are taken. */
  noteHistory(messages: readonly ChatMessage[]): void {
    for (const { tool_calls: calls } of messages) for (const { id } of calls ?? []) this.#callIds.add(id)
  }
}
