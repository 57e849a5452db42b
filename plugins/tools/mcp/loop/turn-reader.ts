/**
 * Reads one generation: emits its events with the item indexes of the turn, and collects what the next request needs. Calls
 * that the gateway runs are marked as such from their first event on.
 *
 * @hot one call per event of the worker
 */
import type { FinishReason, GenerationEvent, GenerationUsage, NativeAnswer, TokenLogprob } from '#kernel'
import type { CallRoute, ModelCall, ModelTurn } from './model-call.ts'
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
  /** Complete, but its end is not emitted yet: the next event shows whether the answer was cut off after it. */
  #held: ModelCall | null = null
  #text = ''
  #refusal = ''
  #reasoning = ''
  #signature: string | null = null
  #native: NativeAnswer | null = null

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
        this.#emitText('text', event.delta, event.logprobs ?? null)
        break
      case 'reasoning':
        this.#reasoning += event.delta
        this.#emitText('reasoning', event.delta, event.logprobs ?? null)
        break
      case 'reasoning_signature':
        this.#signature = event.signature
        this.#open('reasoning')
        this.#output.emit({ type: event.type, index: this.#openIndex, signature: event.signature })
        // Later reasoning has a signature of its own.
        this.#closeItem(false)
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
      case 'native_item':
        this.#emitNative(event)
        break
      case 'tool_call':
        this.#beginCall(event.index, event.id, event.name)
        break
      case 'tool_arguments':
        this.#addArguments(this.#calls[event.index], event.delta)
        break
      case 'tool_call_done':
        this.#endCall(this.#calls[event.index])
        break
      case 'choice_done':
        this.reason = event.reason
        this.matchedStop = event.matchedStop
        this.#native = event.native ?? null
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
    }
  }

  #emitText(type: 'text' | 'reasoning', delta: string, logprobs: readonly TokenLogprob[] | null): void {
    this.#open(type === 'text' ? 'message' : 'reasoning')
    this.#output.emit({ type, index: this.#openIndex, delta, logprobs })
  }

  #open(item: 'message' | 'reasoning'): void {
    this.#releaseHeld(false)
    if (this.#openItem === item) return
    this.#closeItem(false)
    this.#openItem = item
    this.#openIndex = this.#output.nextIndex()
    this.#output.emit({ type: 'item_started', index: this.#openIndex, item })
  }

  #emitNative({ engine, item }: Extract<GenerationEvent, { type: 'native_item' }>): void {
    this.#releaseHeld(false)
    this.#closeItem(false)
    this.#output.emit({ type: 'native_item', index: this.#output.nextIndex(), engine, item })
  }

  #closeItem(isCut: boolean): void {
    if (this.#openItem === null) return
    this.#openItem = null
    this.#output.emit({ type: 'item_done', index: this.#openIndex, isCut })
  }

  #beginCall(position: number, modelId: string, name: string): void {
    this.#releaseHeld(false)
    this.#closeItem(false)
    const route = this.#routeOf(name)
    const id = this.#output.callId(modelId)
    const call: ModelCall = { id, name, route, index: null, argumentText: '', isWhole: false }
    this.#calls[position] = call
    if (route.kind === 'function') {
      call.index = this.#output.nextIndex()
      this.#output.emit({ type: 'function_started', index: call.index, callId: id, name })
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

  #endCall(call: ModelCall | undefined): void {
    if (call === undefined || call.isWhole) return
    this.#releaseHeld(false)
    call.isWhole = true
    this.#held = call
  }

  #releaseHeld(isCut: boolean): void {
    const call = this.#held
    this.#held = null
    if (call !== null) this.#emitEnd(call, isCut)
  }

  #endChoice(isCut: boolean): void {
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
