/** Frames that are about one item: each says which. */
import { type DeltaFrame, deltaFrame, type Frames } from './frames.ts'

export class ItemFrames {
  readonly index: number
  readonly id: string
  readonly #frames: Frames | null
  /** In front of what a frame says of the item's parts. */
  readonly #where: string

  constructor(index: number, id: string, frames: Frames | null) {
    this.index = index
    this.id = id
    this.#frames = frames
    this.#where = `"item_id":"${id}","output_index":${index}`
  }

  get isFollowed(): boolean {
    return this.#frames !== null
  }

  send(type: string, members = ''): void {
    this.#frames?.send(type, members === '' ? this.#where : `${this.#where},${members}`)
  }

  /** @param before JSON text of the members in front of the delta; may be empty */
  deltas(type: string, before = '', after = ''): DeltaFrame {
    return deltaFrame(type, before === '' ? this.#where : `${this.#where},${before}`, 'delta', after)
  }

  delta(frame: DeltaFrame, value: string): void {
    this.#frames?.sendDelta(frame, JSON.stringify(value))
  }

  item(type: 'added' | 'done', item: object): void {
    this.#frames?.send(
      `response.output_item.${type}`,
      `"output_index":${this.index},"item":${JSON.stringify(item)}`,
    )
  }
}
