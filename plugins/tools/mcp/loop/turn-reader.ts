/**
 * Reads one generation: emits its events with the item indexes of the turn, and collects what the next request needs. Calls
 * that the gateway runs are marked as such from their first event on.
 *
 * @hot one call per event of the worker
 */
import type { FinishReason, GenerationEvent, GenerationUsage, NativeAnswer, NativeObject } from '#kernel'
import { GenerationItems, type TurnOutput } from '#shared'
import type { CallRoute, ModelCall, ModelTurn } from './turn-messages.ts'

export class TurnReader extends GenerationItems<CallRoute> {
  reason: FinishReason = 'stop'
  matchedStop: string | number | null = null
  /** The end is one for the client only: the calls of the gateway fail instead. */
  hasBrokenCalls = false
  usage: GenerationUsage | null = null
  readonly #isFirst: boolean
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
    super(output, routeOf)
    this.#isFirst = isFirst
  }

  /** @param event neither `finished` nor `failed`; of choice 0 */
  read(event: GenerationEvent): void {
    switch (event.type) {
      case 'started':
        if (this.#isFirst) this.output.emit({ type: 'started', started: event })
        return
      case 'text':
        this.#text += event.delta
        break
      case 'reasoning':
        this.#reasoning += event.delta
        break
      case 'reasoning_signature':
        this.#signature = event.signature
        this.add(event)
        // Later reasoning has a signature of its own; a worker that has items ends them itself.
        if (!this.#hasItems) this.closeItem(false)
        return
      case 'refusal':
        this.#refusal += event.delta
        break
      case 'item_started':
        this.#hasItems = true
        break
      case 'choice_done':
        this.reason = event.reason
        this.matchedStop = event.matchedStop
        this.hasBrokenCalls = event.hasBrokenCalls === true
        this.#native = event.native ?? null
        this.#extraContent = event.extraContent
    }
    this.add(event)
  }

  get turn(): ModelTurn {
    return {
      text: this.#text,
      refusal: this.#refusal,
      reasoning: this.#reasoning,
      signature: this.#signature,
      calls: [...this.calls.values()],
      native: this.#native,
      extraContent: this.#extraContent,
    }
  }

  protected override beginOtherCall(call: ModelCall): void {
    const { id: callId, route } = call
    if (route.kind !== 'gateway' || route.tool.isHidden) return
    call.index = this.output.nextIndex()
    const tool = route.tool.called
    this.output.emit({ type: 'call_started', index: call.index, callId, tool, approvalId: null })
  }

  protected override endOtherCall(call: ModelCall, isCut: boolean): void {
    if (isCut) return
    const { route, index, argumentText } = call
    if (route.kind === 'approval') this.#requestApproval(call, route)
    else if (index !== null) this.output.emit({ type: 'call_arguments_done', index, arguments: argumentText })
  }

  #requestApproval(call: ModelCall, { tool }: Extract<CallRoute, { readonly tool: unknown }>): void {
    const { called, server } = tool
    call.index = this.output.nextIndex()
    this.output.emit({
      type: 'approval_requested',
      index: call.index,
      callId: call.id,
      label: server.plan.label,
      name: called.kind === 'mcp' ? called.name : call.name,
      arguments: call.argumentText,
    })
  }
}
