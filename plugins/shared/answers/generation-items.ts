/**
 * The events of one generation as those of a turn: items that the worker implies are begun, numbered and ended. The end of an
 * item is held back until it is known whether the answer was cut inside of it.
 *
 * @hot one call per event of the worker
 */
import type { GenerationEvent, NativeObject, NativeSubject } from '#kernel'
import { withExtraContent } from '../formats/tool-calls.ts'
import type { TurnOutput } from './turn-output.ts'

/** Who runs a call. `function`: the client. */
interface CallRoute {
  readonly kind: string
}

export interface ItemCall<Route extends CallRoute> {
  /** Id from the model, made unique within the turn. */
  readonly id: string
  /** As the model wrote it. */
  readonly name: string
  readonly route: Route
  /** Index of the output item; null for calls that have none. */
  index: number | null
  argumentText: string
  isWhole: boolean
  /** As of the generation's event. */
  members: NativeObject | undefined
  /** As of the generation's event. */
  readonly extraContent: NativeObject | undefined
}

type Arguments = Pick<Extract<GenerationEvent, { type: 'tool_arguments' }>, 'delta' | 'members' | 'source'>

interface OpenText {
  readonly kind: 'message' | 'reasoning'
  readonly index: number
  /** Set once the worker has ended the item. */
  members: NativeObject | undefined
}

export class GenerationItems<Route extends CallRoute> {
  protected readonly output: TurnOutput
  /** By number. */
  protected readonly calls = new Map<number, ItemCall<Route>>()
  readonly #routeOf: (name: string) => Route
  #open: OpenText | null = null
  /** Output indexes of open native items, by number. */
  readonly #natives = new Map<number, number>()
  /** The last complete call, until its end is emitted. */
  #held: ItemCall<Route> | null = null

  /** @param routeOf called once for each call */
  constructor(output: TurnOutput, routeOf: (name: string) => Route) {
    this.output = output
    this.#routeOf = routeOf
  }

  /** Begins the item of a call that the client does not run; it has none by default. */
  protected beginOtherCall(_call: ItemCall<Route>): void {}

  /** Ends the item of a call that the client does not run. */
  protected endOtherCall(_call: ItemCall<Route>, _isCut: boolean): void {}

  protected get openKind(): 'message' | 'reasoning' | null {
    return this.#open?.kind ?? null
  }

  /** @param event neither `started`, `finished` nor `failed`; of choice 0 */
  protected add(event: GenerationEvent): void {
    switch (event.type) {
      case 'text':
        this.output.emit({
          type: event.type,
          index: this.#indexOfOpen('message'),
          delta: event.delta,
          logprobs: event.logprobs ?? null,
          members: event.members,
          source: event.source,
        })
        return
      case 'reasoning':
        this.output.emit({
          type: event.type,
          index: this.#indexOfOpen('reasoning'),
          delta: event.delta,
          logprobs: event.logprobs ?? null,
          isBreak: event.isBreak,
          form: event.form,
          members: event.members,
          source: event.source,
        })
        return
      case 'reasoning_signature': {
        const index = this.#indexOfOpen('reasoning')
        this.output.emit({ type: event.type, index, signature: event.signature })
        return
      }
      case 'refusal':
        this.output.emit({
          type: event.type,
          index: this.#indexOfOpen('message'),
          delta: event.delta,
          members: event.members,
          source: event.source,
        })
        return
      case 'annotation': {
        const index = this.#indexOfOpen('message')
        const { annotation, engine } = event
        this.output.emit({ type: event.type, index, annotation, ...(engine !== undefined && { engine }) })
        return
      }
      case 'item_started':
        this.begin(event.item, event.members)
        return
      case 'part_done':
        this.output.emit({ type: event.type, index: this.#indexOfOpen('message'), part: event.part })
        return
      case 'item_done':
        if (this.#open !== null) this.#open.members = event.members
        return
      case 'native_started': {
        this.#endPrevious()
        const index = this.output.nextIndex()
        this.#natives.set(event.number, index)
        this.output.emit({ type: event.type, index, engine: event.engine, item: event.item })
        return
      }
      case 'native_event':
        this.#addNative(event.of, event.event)
        return
      case 'native_item': {
        const index = this.#natives.get(event.number)
        this.#natives.delete(event.number)
        if (index !== undefined)
          this.output.emit({ type: event.type, index, engine: event.engine, item: event.item })
        return
      }
      case 'tool_call':
        this.#beginCall(event)
        return
      case 'tool_arguments':
        this.#addArguments(this.calls.get(event.index), event)
        return
      case 'tool_call_done':
        this.#holdCall(this.calls.get(event.index), event.members)
        return
      case 'choice_done':
        this.#end(event)
    }
  }

  protected begin(kind: 'message' | 'reasoning', members?: NativeObject): number {
    this.#endPrevious()
    const index = this.output.nextIndex()
    this.#open = { kind, index, members: undefined }
    this.output.emit({ type: 'item_started', index, item: kind, ...(members && { members }) })
    return index
  }

  /** Ends the open message or reasoning. */
  protected closeItem(isCut: boolean): void {
    if (this.#open === null) return
    const { index, members } = this.#open
    this.#open = null
    this.output.emit({ type: 'item_done', index, isCut, ...(members && { members }) })
  }

  /** @returns the index of the open item of that kind, begun here if there is none */
  #indexOfOpen(kind: 'message' | 'reasoning'): number {
    const open = this.#open
    if (open?.kind !== kind || open.members !== undefined) return this.begin(kind)
    this.#releaseCall(false)
    return open.index
  }

  #endPrevious(): void {
    this.closeItem(false)
    this.#releaseCall(false)
  }

  /** Drops events of items that have ended, and of calls that the client does not run. */
  #addNative(of: NativeSubject, event: NativeObject): void {
    if (of.kind === 'answer') {
      if (this.#open?.members !== undefined) this.closeItem(false)
      this.#releaseCall(false)
      this.output.emit({ type: 'native_answer_event', event })
      return
    }
    const index = this.#indexOf(of)
    if (index !== null) this.output.emit({ type: 'native_event', index, event })
  }

  #indexOf(of: Exclude<NativeSubject, { kind: 'answer' }>): number | null {
    if (of.kind === 'open') return this.#open?.index ?? null
    if (of.kind === 'native') return this.#natives.get(of.number) ?? null
    const call = this.calls.get(of.number)
    return call?.route.kind === 'function' && !call.isWhole ? call.index : null
  }

  #beginCall(event: Extract<GenerationEvent, { type: 'tool_call' }>): void {
    const { name, extraContent } = event
    this.#endPrevious()
    const call: ItemCall<Route> = {
      id: this.output.callId(event.id),
      name,
      route: this.#routeOf(name),
      index: null,
      argumentText: '',
      isWhole: false,
      members: withExtraContent(event.members, extraContent),
      extraContent,
    }
    this.calls.set(event.index, call)
    if (call.route.kind !== 'function') {
      this.beginOtherCall(call)
      return
    }
    const { id: callId, members } = call
    call.index = this.output.nextIndex()
    this.output.emit({
      type: 'function_started',
      index: call.index,
      callId,
      name,
      ...(members && { members }),
    })
  }

  #addArguments(call: ItemCall<Route> | undefined, event: Arguments): void {
    if (call === undefined || call.isWhole) return
    call.argumentText += event.delta
    this.#emitArguments(call, event)
  }

  #emitArguments({ route, index }: ItemCall<Route>, { delta, members, source }: Arguments): void {
    if (index === null) return
    if (route.kind !== 'function') this.output.emit({ type: 'call_arguments', index, delta })
    else this.output.emit({ type: 'function_arguments', index, delta, members, source })
  }

  #holdCall(call: ItemCall<Route> | undefined, members: NativeObject | undefined): void {
    if (call === undefined || call.isWhole) return
    this.#releaseCall(false)
    call.members = withExtraContent(members, call.extraContent)
    call.isWhole = true
    this.#held = call
  }

  #releaseCall(isCut: boolean): void {
    const call = this.#held
    this.#held = null
    if (call !== null) this.#endCall(call, isCut)
  }

  #endCall(call: ItemCall<Route>, isCut: boolean): void {
    if (call.argumentText === '' && !isCut) {
      // The deltas must add up to the complete text.
      call.argumentText = '{}'
      this.#emitArguments(call, { delta: '{}' })
    }
    const { id: callId, name, index, argumentText, members } = call
    if (call.route.kind !== 'function') this.endOtherCall(call, isCut)
    else if (index !== null)
      this.output.emit({
        type: 'function_done',
        index,
        callId,
        name,
        arguments: argumentText,
        isCut,
        ...(members && { members }),
      })
  }

  #end({ reason, extraContent, hasBrokenCalls }: Extract<GenerationEvent, { type: 'choice_done' }>): void {
    const isCut = reason === 'length' || reason === 'content_filter'
    // A message without text holds the data behind calls.
    if (extraContent !== undefined && !isCut && this.#open === null) this.begin('message')
    if (this.#open !== null) this.#open.members = withExtraContent(this.#open.members, extraContent)
    this.closeItem(isCut)
    this.#releaseCall(isCut)
    for (const call of this.calls.values()) {
      if (call.isWhole) continue
      // Engines may omit the end of their last call; it is complete unless the answer was cut off.
      call.isWhole = !isCut || (hasBrokenCalls === true && call.route.kind !== 'function')
      this.#endCall(call, !call.isWhole)
    }
  }
}
