/**
 * Reads one generation: emits its events with the item indexes of the turn, and collects what the next request needs. Calls
 * that the gateway runs are marked as such from their first event on.
 *
 * @hot one call per event of the worker
 */
import type {
  FinishReason,
  GenerationEvent,
  GenerationUsage,
  NativeAnswer,
  NativeObject,
  NativeSubject,
} from '#kernel'
import { withExtraContent } from '#shared'
import type { CallRoute, ModelCall, ModelTurn } from './turn-messages.ts'
import type { TurnOutput } from './turn-output.ts'

export class TurnReader {
  reason: FinishReason = 'stop'
  matchedStop: string | number | null = null
  usage: GenerationUsage | null = null
  readonly #output: TurnOutput
  readonly #routeOf: (name: string) => CallRoute
  readonly #isFirst: boolean
  readonly #calls: (ModelCall | undefined)[] = []
  #openItem: 'message' | 'reasoning' | null = null
  #openIndex = 0
  /** Set once the worker has ended the open item, which stays open until it is known that the answer was not cut inside of it. */
  #openMembers: NativeObject | undefined
  /** Output indexes of open native items, by number. */
  readonly #natives = new Map<number, number>()
  /** Complete, but its end is not emitted yet: the next event shows whether the answer was cut off after it. */
  #held: ModelCall | null = null
  #text = ''
  #refusal = ''
  #reasoning = ''
  #signature: string | null = null
  #native: NativeAnswer | null = null
  #extraContent: NativeObject | undefined
  /** The worker's format has items. */
  #hasItems = false

  /** @param routeOf decides who runs a call of this name, and counts calls that the gateway runs */
  constructor(output: TurnOutput, routeOf: (name: string) => CallRoute, isFirst: boolean) {
    this.#output = output
    this.#routeOf = routeOf
    this.#isFirst = isFirst
  }

  /** @param event neither `finished` nor `failed`; of choice 0 */
  read(event: GenerationEvent): void {
    switch (event.type) {
      case 'started':
        if (this.#isFirst) this.#output.emit({ type: 'started', started: event })
        break
      case 'text':
        this.#text += event.delta
        this.#open('message')
        this.#output.emit({
          type: 'text',
          index: this.#openIndex,
          delta: event.delta,
          logprobs: event.logprobs ?? null,
        })
        break
      case 'reasoning':
        this.#reasoning += event.delta
        this.#open('reasoning')
        this.#output.emit({
          type: 'reasoning',
          index: this.#openIndex,
          delta: event.delta,
          logprobs: event.logprobs ?? null,
          ...(event.isBreak === true && { isBreak: true }),
          ...(event.form !== undefined && { form: event.form }),
        })
        break
      case 'reasoning_signature':
        this.#signature = event.signature
        this.#open('reasoning')
        this.#output.emit({ type: event.type, index: this.#openIndex, signature: event.signature })
        // Later reasoning has a signature of its own; a worker that has items ends them itself.
        if (!this.#hasItems) this.#closeItem(false)
        break
      case 'refusal':
        this.#refusal += event.delta
        this.#open('message')
        this.#output.emit({ type: event.type, index: this.#openIndex, delta: event.delta })
        break
      case 'annotation':
        this.#open('message')
        this.#output.emit({ type: event.type, index: this.#openIndex, annotation: event.annotation })
        break
      case 'item_started':
        this.#hasItems = true
        this.#begin(event.item, event.members)
        break
      case 'part_done':
        this.#open('message')
        this.#output.emit({ type: event.type, index: this.#openIndex, part: event.part })
        break
      case 'item_done':
        this.#openMembers = event.members
        break
      case 'native_started': {
        this.#releaseHeld(false)
        this.#closeItem(false)
        const index = this.#output.nextIndex()
        this.#natives.set(event.number, index)
        this.#output.emit({ type: event.type, index, engine: event.engine, item: event.item })
        break
      }
      case 'native_event':
        this.#emitNative(event.of, event.event)
        break
      case 'native_item': {
        const index = this.#natives.get(event.number)
        this.#natives.delete(event.number)
        if (index !== undefined)
          this.#output.emit({ type: event.type, index, engine: event.engine, item: event.item })
        break
      }
      case 'tool_call':
        this.#beginCall(event)
        break
      case 'tool_arguments':
        this.#addArguments(this.#calls[event.index], event.delta)
        break
      case 'tool_call_done':
        this.#endCall(this.#calls[event.index], event.members)
        break
      case 'choice_done':
        this.reason = event.reason
        this.matchedStop = event.matchedStop
        this.#native = event.native ?? null
        this.#extraContent = event.extraContent
        this.#endChoice(event.reason === 'length' || event.reason === 'content_filter')
    }
  }

  get turn(): ModelTurn {
    return {
      text: this.#text,
      refusal: this.#refusal,
      reasoning: this.#reasoning,
      signature: this.#signature,
      calls: this.#calls.filter((call) => call !== undefined),
      native: this.#native,
      extraContent: this.#extraContent,
    }
  }

  #open(item: 'message' | 'reasoning'): void {
    if (this.#openItem === item && this.#openMembers === undefined) this.#releaseHeld(false)
    else this.#begin(item)
  }

  #begin(item: 'message' | 'reasoning', members?: NativeObject): void {
    this.#releaseHeld(false)
    this.#closeItem(false)
    this.#openItem = item
    this.#openIndex = this.#output.nextIndex()
    this.#output.emit({ type: 'item_started', index: this.#openIndex, item, ...(members && { members }) })
  }

  /** Drops events of items that have ended, and of calls that the gateway runs. */
  #emitNative(of: NativeSubject, event: NativeObject): void {
    if (of.kind === 'answer') {
      this.#releaseHeld(false)
      if (this.#openMembers !== undefined) this.#closeItem(false)
      this.#output.emit({ type: 'native_answer_event', event })
      return
    }
    const index = this.#indexOf(of)
    if (index !== null) this.#output.emit({ type: 'native_event', index, event })
  }

  #indexOf(of: Exclude<NativeSubject, { kind: 'answer' }>): number | null {
    if (of.kind === 'open') return this.#openItem === null ? null : this.#openIndex
    if (of.kind === 'native') return this.#natives.get(of.number) ?? null
    const call = this.#calls[of.number]
    return call?.route.kind === 'function' && !call.isWhole ? call.index : null
  }

  #closeItem(isCut: boolean): void {
    if (this.#openItem === null) return
    const members = this.#openMembers
    this.#openItem = null
    this.#openMembers = undefined
    this.#output.emit({ type: 'item_done', index: this.#openIndex, isCut, ...(members && { members }) })
  }

  #beginCall(event: Extract<GenerationEvent, { type: 'tool_call' }>): void {
    const { index: position, id: modelId, name, extraContent } = event
    const members = withExtraContent(event.members, extraContent)
    this.#releaseHeld(false)
    this.#closeItem(false)
    const route = this.#routeOf(name)
    const id = this.#output.callId(modelId)
    const call: ModelCall = {
      id,
      name,
      route,
      index: null,
      argumentText: '',
      isWhole: false,
      members,
      extraContent,
    }
    this.#calls[position] = call
    if (route.kind === 'function') {
      call.index = this.#output.nextIndex()
      this.#output.emit({
        type: 'function_started',
        index: call.index,
        callId: id,
        name,
        ...(members && { members }),
      })
    } else if (route.kind === 'gateway' && !route.tool.isHidden) {
      call.index = this.#output.nextIndex()
      const tool = route.tool.called
      this.#output.emit({ type: 'call_started', index: call.index, callId: id, tool, approvalId: null })
    }
  }

  #addArguments(call: ModelCall | undefined, delta: string): void {
    if (call === undefined || call.isWhole) return
    call.argumentText += delta
    if (call.index === null) return
    const type = call.route.kind === 'function' ? 'function_arguments' : 'call_arguments'
    this.#output.emit({ type, index: call.index, delta })
  }

  #endCall(call: ModelCall | undefined, members: NativeObject | undefined): void {
    if (call === undefined || call.isWhole) return
    this.#releaseHeld(false)
    call.members = withExtraContent(members, call.extraContent)
    call.isWhole = true
    this.#held = call
  }

  #releaseHeld(isCut: boolean): void {
    const call = this.#held
    this.#held = null
    if (call !== null) this.#emitEnd(call, isCut)
  }

  #endChoice(isCut: boolean): void {
    // A message without text holds it behind calls.
    if (this.#extraContent !== undefined && !isCut && this.#openItem === null) this.#begin('message')
    this.#openMembers = withExtraContent(this.#openMembers, this.#extraContent)
    this.#releaseHeld(isCut)
    this.#closeItem(isCut)
    for (const call of this.#calls) {
      if (call === undefined || call.isWhole) continue
      // Engines may omit the end of their last call; it is complete unless the answer was cut off.
      call.isWhole = !isCut
      this.#emitEnd(call, isCut)
    }
  }

  #emitEnd(call: ModelCall, isCut: boolean): void {
    if (call.argumentText === '' && !isCut) this.#fillArguments(call)
    const { route, id: callId, name, argumentText } = call
    if (route.kind === 'approval') {
      if (isCut) return
      const { called, server } = route.tool
      const own = called.kind === 'mcp' ? called.name : name
      call.index = this.#output.nextIndex()
      this.#output.emit({
        type: 'approval_requested',
        index: call.index,
        callId,
        label: server.plan.label,
        name: own,
        arguments: argumentText,
      })
    } else if (call.index === null) return
    else if (route.kind === 'function')
      this.#output.emit({
        type: 'function_done',
        index: call.index,
        callId,
        name,
        arguments: argumentText,
        isCut,
        ...(call.members && { members: call.members }),
      })
    else if (!isCut)
      this.#output.emit({ type: 'call_arguments_done', index: call.index, arguments: argumentText })
  }

  /** Emits missing arguments as an empty object, so that the deltas add up to the complete text. */
  #fillArguments(call: ModelCall): void {
    const { isWhole } = call
    call.isWhole = false
    this.#addArguments(call, '{}')
    call.isWhole = isWhole
  }
}
