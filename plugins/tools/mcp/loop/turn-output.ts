/** Output of a turn: the listener, the numbers of calls, and unique call ids. */
import type { ChatMessage, GenerationEvent, GenerationListener } from '#kernel'

export class TurnOutput {
  readonly #listener: GenerationListener
  readonly #callIds = new Set<string>()
  #calls = 0
  #isSilent = false

  constructor(listener: GenerationListener) {
    this.#listener = listener
  }

  /** Events after `finished` or `failed` are dropped. */
  emit(event: GenerationEvent): void {
    if (this.#isSilent) return
    this.#isSilent = event.type === 'finished' || event.type === 'failed'
    this.#listener.onEvent(event)
  }

  silence(): void {
    this.#isSilent = true
  }

  /** Number of the next call that clients see. */
  nextCall(): number {
    return this.#calls++
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
