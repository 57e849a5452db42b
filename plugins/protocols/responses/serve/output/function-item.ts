/** A call of one of the client's functions while the model writes it. */
import type { HistoryItem, ToolLoopEvent } from '#kernel'
import { newItemId } from '../item-ids.ts'
import type { DeltaFrame, Frames } from './frames.ts'
import { ItemFrames } from './item-frames.ts'
import type { OpenItem } from './open-item.ts'

export class FunctionItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #callId: string
  readonly #name: string
  #arguments = ''
  #deltaFrame: DeltaFrame | null = null

  constructor(
    { index, callId, name }: Extract<ToolLoopEvent, { type: 'function_started' }>,
    frames: Frames | null,
  ) {
    this.#frames = new ItemFrames(index, newItemId('function_call'), frames)
    this.#callId = callId
    this.#name = name
  }

  begin(): void {
    this.#frames.item('added', this.#value('in_progress', ''))
  }

  add(event: ToolLoopEvent): void {
    if (event.type !== 'function_arguments') return
    this.#arguments += event.delta
    if (!this.#frames.isFollowed) return
    this.#deltaFrame ??= this.#frames.deltas('response.function_call_arguments.delta')
    this.#frames.delta(this.#deltaFrame, event.delta)
  }

  end(event: ToolLoopEvent): HistoryItem {
    const { arguments: args, isCut } = event as Extract<ToolLoopEvent, { type: 'function_done' }>
    this.#frames.send(
      'response.function_call_arguments.done',
      `"name":${JSON.stringify(this.#name)},"arguments":${JSON.stringify(args)}`,
    )
    const item = this.#value(isCut ? 'incomplete' : 'completed', args)
    this.#frames.item('done', item)
    return item
  }

  asFarAsItCame(): HistoryItem {
    return this.#value('incomplete', this.#arguments)
  }

  #value(status: string, args: string): HistoryItem {
    const { id } = this.#frames
    return { id, type: 'function_call', status, call_id: this.#callId, name: this.#name, arguments: args }
  }
}
