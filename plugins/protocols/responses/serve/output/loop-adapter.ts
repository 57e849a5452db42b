/**
 * Adapts the events of one generation to those of a tool loop, for turns without tools of the gateway: both are encoded
 * by the same code. Only the first choice counts.
 */
import type {
  FinishReason,
  GenerationEvent,
  GenerationListener,
  GenerationUsage,
  NativeAnswer,
  ToolLoopListener,
} from '#kernel'
import { GenerationItems, TurnOutput } from '#shared'

const CLIENT = { kind: 'function' } as const

export class LoopAdapter extends GenerationItems<typeof CLIENT> implements GenerationListener {
  /** White space in front of a message: it is sent only if text follows it. */
  #space = ''
  #reason: FinishReason = 'stop'
  #matchedStop: string | number | null = null
  #native: NativeAnswer | undefined

  constructor(out: ToolLoopListener) {
    super(new TurnOutput(out), () => CLIENT)
  }

  onEvent(event: GenerationEvent): void {
    switch (event.type) {
      case 'started':
        this.output.emit({ type: 'started', started: event })
        return
      case 'finished':
        this.#finish(event.usage)
        return
      case 'failed':
        this.output.end({ type: 'failed', error: event.error, usage: null })
        return
    }
    if (event.choice !== 0) return
    switch (event.type) {
      case 'text':
        this.#text(event)
        return
      case 'native_started':
      case 'tool_call':
        this.#space = ''
        break
      case 'choice_done':
        this.#reason = event.reason
        this.#matchedStop = event.matchedStop
        this.#native = event.native
        if (!this.output.hasItems) this.#addEmptyMessage()
    }
    this.add(event)
  }

  #text(event: Extract<GenerationEvent, { type: 'text' }>): void {
    const { delta, logprobs = null } = event
    const space = this.#space
    if (this.openKind !== 'message' && logprobs === null && delta.trim() === '') {
      this.#space += delta
      return
    }
    this.#space = ''
    this.add(space === '' ? event : { ...event, delta: space + delta })
  }

  /** An answer that is only white space still has a message, as an empty one has. */
  #addEmptyMessage(): void {
    this.begin('message')
    if (this.#space !== '') this.add({ type: 'text', choice: 0, delta: this.#space })
  }

  #finish(usage: GenerationUsage | null): void {
    this.output.end({
      type: 'finished',
      reason: this.#reason === 'tool_calls' ? 'handed_over' : this.#reason,
      matchedStop: this.#matchedStop,
      ...(this.#native !== undefined && { native: this.#native }),
      usage,
      iterations: 1,
      toolCalls: 0,
    })
  }
}
