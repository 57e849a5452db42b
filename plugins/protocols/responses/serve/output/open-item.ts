/** Output items that have not ended, and those that are passed on: in a worker's format, or whole from their beginning. */
import type { GenerationEvent, HistoryItem, NativeObject } from '#kernel'
import { CUSTOM_CALL, newItemId, withoutPrivate } from '#shared'
import type { SealedText } from '../prompt/sealed-text.ts'
import type { StandIn } from '../read/stand-ins.ts'
import { type EventEncoder, ItemEncoder } from './event-encoder.ts'

/** Output options of the client. */
export interface OutputOptions {
  readonly hasLogprobs: boolean
  /** Reasoning is shown as a summary. */
  readonly hasSummary: boolean
  /** Encrypts reasoning for the client; null if the client does not request it. */
  readonly seal: ((text: SealedText) => string) | null
  readonly hasSources: boolean
  readonly hasCodeOutputs: boolean
  readonly hasSearchResults: boolean
  /** As of the declared tools. */
  readonly standIns: ReadonlyMap<string, StandIn>
}

/** The event of this type. */
export type EventOf<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

/** The end of a message, of reasoning, or of a call that the client runs. */
export interface TextEnd {
  /** The answer was cut off inside of the item. */
  readonly isCut: boolean
  readonly members?: NativeObject
}

export type ItemEnd = TextEnd | EventOf<'native_item' | 'list_done' | 'list_failed' | 'call_done'>

/** An output item that has not ended. */
export abstract class OpenItem {
  protected readonly encoder: ItemEncoder
  /** Members that the worker added to the format. */
  protected members: NativeObject | undefined

  /** @param events null without a stream */
  constructor(index: number, type: string, events: EventEncoder | null, members?: NativeObject) {
    this.encoder = new ItemEncoder(index, { id: newItemId(type), type }, events)
    this.members = members
  }

  abstract begin(): void

  get index(): number {
    return this.encoder.index
  }

  add(event: GenerationEvent): void {
    if (event.type === 'native_event') this.encoder.native(event.event)
  }

  /** The arguments of a call that the gateway runs are complete. */
  argumentsDone(_args: string): void {}

  /** @param end as the kind of the item has it */
  abstract end(end: ItemEnd): HistoryItem

  /** The incomplete item, for a response that ended early. */
  abstract incomplete(): HistoryItem

  /** Takes the members of the end. @returns the status of the item */
  protected statusAt({ isCut, members }: TextEnd): string {
    this.members = members ?? this.members
    if (isCut) return 'incomplete'
    return typeof members?.status === 'string' ? members.status : 'completed'
  }

  /** Sends the end of the item. */
  protected done(item: HistoryItem): HistoryItem {
    this.encoder.done(item)
    return item
  }
}

/** An item in the worker's format, with a new id. The worker's id is stored, for requests that send the item back to it. */
export class NativeItem extends OpenItem {
  #item: NativeObject
  #hasEvents = false

  constructor(index: number, item: NativeObject, events: EventEncoder | null) {
    super(index, String(item.type), events)
    this.#item = item
  }

  /** Some workers send only complete items. */
  begin(): void {
    this.encoder.added({
      ...this.incomplete(),
      ...(this.#item.status === 'completed' && { status: 'in_progress' }),
      ...(this.encoder.type === CUSTOM_CALL && { input: '' }),
    })
  }

  override add(event: GenerationEvent): void {
    super.add(event)
    this.#hasEvents ||= event.type === 'native_event'
  }

  end({ item }: EventOf<'native_item'>): HistoryItem {
    this.#item = item
    const { input } = this.#item
    if (this.encoder.type === CUSTOM_CALL && !this.#hasEvents) this.encoder.wholeMember('input', input ?? '')
    return this.done(this.incomplete())
  }

  incomplete(): HistoryItem {
    const { id, type } = this.encoder
    const { id: workerId } = this.#item
    return {
      ...withoutPrivate(this.#item as HistoryItem),
      id,
      type,
      ...(typeof workerId === 'string' && { _workerId: workerId }),
    }
  }
}

/** Sends an item that is whole from its beginning. */
export function sendWholeItem(index: number, item: HistoryItem, events: EventEncoder | null): void {
  const encoder = new ItemEncoder(index, item, events)
  const { status } = item
  encoder.added({ ...item, ...(status !== undefined && { status: 'in_progress' }) })
  encoder.done(item)
}
