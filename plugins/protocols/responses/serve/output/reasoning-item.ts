/** Reasoning while the model writes it, told as text or as a summary. */
import type { HistoryItem, ToolLoopEvent } from '#kernel'
import { newItemId } from '../item-ids.ts'
import type { DeltaFrame, Frames } from './frames.ts'
import { ItemFrames } from './item-frames.ts'
import type { OpenItem } from './open-item.ts'
import type { OutputWishes } from './output-wishes.ts'

export class ReasoningItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #wishes: OutputWishes
  #text = ''
  #signature: string | undefined
  #hasPart = false
  #deltaFrame: DeltaFrame | null = null

  constructor(index: number, frames: Frames | null, wishes: OutputWishes) {
    this.#frames = new ItemFrames(index, newItemId('reasoning'), frames)
    this.#wishes = wishes
  }

  begin(): void {
    this.#frames.item('added', { id: this.#frames.id, type: 'reasoning', status: 'in_progress', summary: [] })
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'reasoning_signature') this.#signature = (this.#signature ?? '') + event.signature
    if (event.type !== 'reasoning') return
    this.#text += event.delta
    if (!this.#frames.isFollowed) return
    this.#beginPart()
    this.#deltaFrame ??= this.#wishes.hasSummary
      ? this.#frames.deltas('response.reasoning_summary_text.delta', '"summary_index":0')
      : this.#frames.deltas('response.reasoning_text.delta', '"content_index":0')
    this.#frames.delta(this.#deltaFrame, event.delta)
  }

  end(event: ToolLoopEvent): HistoryItem {
    if (this.#frames.isFollowed) this.#endPart()
    const item = this.#value(event.type === 'item_done' && event.isCut ? 'incomplete' : 'completed')
    this.#frames.item('done', item)
    return item
  }

  asFarAsItCame(): HistoryItem {
    return this.#value('incomplete')
  }

  #beginPart(): void {
    if (this.#hasPart) return
    this.#hasPart = true
    if (this.#wishes.hasSummary)
      this.#frames.send(
        'response.reasoning_summary_part.added',
        '"summary_index":0,"part":{"type":"summary_text","text":""}',
      )
    else
      this.#frames.send(
        'response.content_part.added',
        '"content_index":0,"part":{"type":"reasoning_text","text":""}',
      )
  }

  #endPart(): void {
    if (!this.#hasPart) return
    const text = JSON.stringify(this.#text)
    if (this.#wishes.hasSummary) {
      this.#frames.send('response.reasoning_summary_text.done', `"summary_index":0,"text":${text}`)
      this.#frames.send(
        'response.reasoning_summary_part.done',
        `"summary_index":0,"part":{"type":"summary_text","text":${text}}`,
      )
    } else {
      this.#frames.send('response.reasoning_text.done', `"content_index":0,"text":${text}`)
      this.#frames.send(
        'response.content_part.done',
        `"content_index":0,"part":{"type":"reasoning_text","text":${text}}`,
      )
    }
  }

  #value(status: string): HistoryItem {
    const { seal, hasSummary } = this.#wishes
    const text = this.#text
    return {
      id: this.#frames.id,
      type: 'reasoning',
      status,
      summary: hasSummary && text !== '' ? [{ type: 'summary_text', text }] : [],
      ...(!hasSummary && text !== '' && { content: [{ type: 'reasoning_text', text }] }),
      ...(seal !== null && { encrypted_content: seal({ text, signature: this.#signature }) }),
    }
  }
}
