/**
 * Reads one generation of a turn: passes its events on with the call numbers and ids of the turn, without calls that clients
 * do not see, and collects what the next request needs.
 *
 * @hot one call per event of the worker
 */
import type { ChoiceEnd, GenerationEvent, GenerationUsage, NativeObject } from '#kernel'
import type { CallRoute, ModelCall, ModelTurn } from './turn-messages.ts'
import type { TurnOutput } from './turn-output.ts'

type EventOf<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

export class TurnReader {
  /** Null before it. */
  end: EventOf<'choice_done'> | null = null
  usage: GenerationUsage | null = null
  readonly #output: TurnOutput
  readonly #routeOf: (name: string) => CallRoute
  readonly #isFirst: boolean
  readonly #calls = new Map<number, ModelCall>()
  /** A complete call whose approval is requested unless the answer is cut off. */
  #held: ModelCall | null = null
  #text = ''
  #refusal = ''
  #reasoning = ''
  #signature: string | null = null

  /** @param routeOf decides who runs a call of this name, and counts calls that the gateway runs; called once for each call */
  constructor(output: TurnOutput, routeOf: (name: string) => CallRoute, isFirst: boolean) {
    this.#output = output
    this.#routeOf = routeOf
    this.#isFirst = isFirst
  }

  /** @param event neither `finished` nor `failed`; of choice 0 */
  read(event: GenerationEvent): void {
    switch (event.type) {
      case 'started':
        if (this.#isFirst) this.#output.emit(event)
        return
      case 'tool_arguments':
        this.#addArguments(event)
        return
      case 'tool_call_done': {
        const call = this.#calls.get(event.index)
        if (call !== undefined) this.#complete(call, event.members)
        return
      }
      case 'native_event':
        this.#addNative(event)
        return
      case 'text':
        this.#text += event.delta
        break
      case 'reasoning':
        this.#reasoning += event.delta
        break
      case 'reasoning_signature':
        this.#signature = event.signature
        break
      case 'refusal':
        this.#refusal += event.delta
    }
    if (event.type === 'choice_done') {
      this.#end(event)
      return
    }
    this.#release()
    if (event.type === 'tool_call') this.#begin(event)
    else this.#output.emit(event)
  }

  get turn(): ModelTurn {
    return {
      text: this.#text,
      refusal: this.#refusal,
      reasoning: this.#reasoning,
      signature: this.#signature,
      calls: [...this.#calls.values()],
      native: this.end?.native ?? null,
      extraContent: this.end?.extraContent,
    }
  }

  #begin(event: EventOf<'tool_call'>): void {
    const { name, extraContent } = event
    const route = this.#routeOf(name)
    const isGateway = route.kind === 'gateway' && !route.tool.isHidden
    const call: ModelCall = {
      id: this.#output.callId(event.id),
      name,
      route,
      index: isGateway || route.kind === 'function' ? this.#output.nextCall() : null,
      argumentText: '',
      isWhole: false,
      extraContent,
    }
    this.#calls.set(event.index, call)
    const { id, index } = call
    if (index === null) return
    if (isGateway)
      this.#output.emit({ type: 'tool_call', choice: 0, index, id, name, tool: route.tool.called })
    else this.#output.emit(index === event.index && id === event.id ? event : { ...event, id, index })
  }

  #addArguments(event: EventOf<'tool_arguments'>): void {
    const call = this.#calls.get(event.index)
    if (call === undefined || call.isWhole) return
    call.argumentText += event.delta
    const { index } = call
    if (index !== null) this.#output.emit(index === event.index ? event : { ...event, index })
  }

  #complete(call: ModelCall, members?: NativeObject): void {
    if (call.isWhole) return
    this.#release()
    call.isWhole = true
    if (call.argumentText === '') call.argumentText = '{}'
    const { index } = call
    if (call.route.kind === 'approval') this.#held = call
    else if (index !== null) this.#output.emit({ type: 'tool_call_done', choice: 0, index, members })
  }

  /** Drops events of calls that the client does not run. */
  #addNative(event: EventOf<'native_event'>): void {
    const { of } = event
    if (of.kind !== 'call') {
      this.#output.emit(event)
      return
    }
    const call = this.#calls.get(of.number)
    if (call?.route.kind === 'function' && call.index !== null)
      this.#output.emit({ ...event, of: { kind: 'call', number: call.index } })
  }

  #end(event: EventOf<'choice_done'>): void {
    this.end = event
    if (isCut(event)) this.#held = null
    // Engines may omit the end of their last call; it is complete unless the answer was cut off.
    for (const call of this.#calls.values())
      if (!isCut(event) || (event.hasBrokenCalls === true && call.route.kind !== 'function'))
        this.#complete(call)
    this.#release()
    this.#output.emit({ ...event, type: 'generation_done' })
  }

  /** Requests the approval that was held back. */
  #release(): void {
    const call = this.#held
    this.#held = null
    if (call?.route.kind !== 'approval') return
    const { called, server } = call.route.tool
    this.#output.emit({
      type: 'approval_requested',
      choice: 0,
      callId: call.id,
      label: server.plan.label,
      name: called.kind === 'mcp' ? called.name : call.name,
      arguments: call.argumentText,
    })
  }
}

function isCut({ reason }: ChoiceEnd): boolean {
  return reason === 'length' || reason === 'content_filter'
}
