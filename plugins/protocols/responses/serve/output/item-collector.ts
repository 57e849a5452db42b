/**
 * Makes output items of the events of a generation or a turn: begins, numbers and ends items that the worker implies. The end
 * of an item is held back until it is known whether the answer was cut off inside of it.
 *
 * @hot one call per event of the worker
 */
import type { ChoiceEnd, GenerationEvent, NativeObject } from '#kernel'
import { withExtraContent } from '#shared'
import { approvalItem } from '../approvals.ts'
import { CallItem } from './call-items.ts'
import { MessageItem, ReasoningItem } from './model-items.ts'
import { type EventOf, NativeItem, type OpenItem } from './open-item.ts'
import { OutputItems } from './output-items.ts'
import { BuiltInItem, ListItem, McpCallItem } from './tool-items.ts'

interface OpenText {
  readonly kind: 'message' | 'reasoning'
  readonly item: OpenItem
  /** Set once the worker has ended the item. */
  members: NativeObject | undefined
}

interface OpenCall {
  readonly item: OpenItem
  readonly isGateway: boolean
  readonly extraContent: NativeObject | undefined
  members: NativeObject | undefined
  argumentText: string
  isWhole: boolean
}

export class ItemCollector extends OutputItems {
  /** Null before it. */
  end: EventOf<'choice_done'> | null = null
  #text: OpenText | null = null
  /** By number. */
  readonly #calls = new Map<number, OpenCall>()
  readonly #natives = new Map<number, OpenItem>()
  /** By label. */
  readonly #lists = new Map<string, OpenItem>()
  /** The last complete call, until its end is sent. */
  #held: OpenCall | null = null
  /** White space in front of a message: it is sent only if text follows it. */
  #space = ''
  /** The worker's format has items. */
  #hasItems = false

  /** Other choices than the first are ignored. */
  add(event: GenerationEvent): void {
    if (!('choice' in event) || event.choice !== 0) return
    switch (event.type) {
      case 'text':
        this.#addText(event)
        return
      case 'refusal':
      case 'annotation':
      case 'part_done':
        this.#itemOf('message').add(event)
        return
      case 'reasoning':
        this.#itemOf('reasoning').add(event)
        return
      case 'reasoning_signature':
        this.#itemOf('reasoning').add(event)
        // Later reasoning has a signature of its own; a worker that has items ends them itself.
        if (!this.#hasItems) this.#closeText(false)
        return
      case 'item_started':
        this.#hasItems = true
        this.#beginText(event.item, event.members)
        return
      case 'item_done':
        if (this.#text !== null) this.#text.members = event.members
        return
      case 'native_started':
        this.#space = ''
        this.#endPrevious()
        this.#natives.set(
          event.number,
          this.begin((index, events) => new NativeItem(index, event.item, events)),
        )
        return
      case 'native_event':
        this.#addNative(event)
        return
      case 'native_item':
        this.close(this.#natives.get(event.number), event)
        this.#natives.delete(event.number)
        return
      case 'tool_call':
        this.#space = ''
        this.#beginCall(event)
        return
      case 'tool_arguments':
        this.#addArguments(event)
        return
      case 'tool_call_done':
        this.#holdCall(this.#calls.get(event.index), event.members)
        return
      case 'generation_done':
        this.#endGeneration(event)
        return
      case 'choice_done':
        this.end = event
        if (this.isEmpty) this.#addEmptyMessage()
        this.#endGeneration(event)
        return
      case 'list_started':
        this.#lists.set(
          event.label,
          this.begin((index, events) => new ListItem(index, event.label, events)),
        )
        return
      case 'list_done':
      case 'list_failed':
        this.close(this.#lists.get(event.label), event)
        return
      case 'call_running':
        this.#releaseCall(false)
        this.#calls.get(event.index)?.item.add(event)
        return
      case 'call_done':
        this.#releaseCall(false)
        this.close(this.#calls.get(event.index)?.item, event)
        return
      case 'approval_requested':
        this.#endPrevious()
        this.addWhole(approvalItem(event))
        return
      case 'hidden_call':
        this.hide(event)
    }
  }

  #addText(event: EventOf<'text'>): void {
    const { delta } = event
    const space = this.#space
    if (this.#text?.kind !== 'message' && event.logprobs == null && delta.trim() === '') {
      this.#space += delta
      return
    }
    this.#space = ''
    this.#itemOf('message').add(space === '' ? event : { ...event, delta: space + delta })
  }

  /** An answer that is only white space still has a message, as an empty one has. */
  #addEmptyMessage(): void {
    this.#beginText('message')
    if (this.#space !== '') this.#addText({ type: 'text', choice: 0, delta: this.#space })
  }

  #beginText(kind: OpenText['kind'], members?: NativeObject): OpenItem {
    this.#endPrevious()
    const Item = kind === 'message' ? MessageItem : ReasoningItem
    const item = this.begin((index, events) => new Item(index, members, events, this.options))
    this.#text = { kind, item, members: undefined }
    return item
  }

  #closeText(isCut: boolean): void {
    if (this.#text === null) return
    const { item, members } = this.#text
    this.#text = null
    this.close(item, { isCut, members })
  }

  /** @returns the open item of that kind, begun here if there is none */
  #itemOf(kind: OpenText['kind']): OpenItem {
    const open = this.#text
    if (open?.kind !== kind || open.members !== undefined) return this.#beginText(kind)
    this.#releaseCall(false)
    return open.item
  }

  #endPrevious(): void {
    this.#closeText(false)
    this.#releaseCall(false)
  }

  /** Drops events of items that have ended, and of calls that the gateway runs. */
  #addNative(event: EventOf<'native_event'>): void {
    const { of } = event
    if (of.kind === 'answer') {
      if (this.#text?.members !== undefined) this.#closeText(false)
      this.#releaseCall(false)
      this.events?.sendNative(event.event, null)
    } else if (of.kind === 'open') this.#text?.item.add(event)
    else if (of.kind === 'native') this.#natives.get(of.number)?.add(event)
    else {
      const call = this.#calls.get(of.number)
      if (call !== undefined && !call.isGateway && !call.isWhole) call.item.add(event)
    }
  }

  #beginCall({
    index: number,
    id: callId,
    name,
    extraContent,
    tool,
    approvalId,
    ...event
  }: EventOf<'tool_call'>): void {
    this.#endPrevious()
    const members = withExtraContent(event.members, extraContent)
    const item = this.begin((index, events) => {
      if (tool === undefined) return new CallItem({ index, callId, name, members }, events, this.options)
      return tool.kind === 'mcp'
        ? new McpCallItem(index, tool, approvalId ?? null, events)
        : new BuiltInItem(index, tool.type, events, this.options)
    })
    const isGateway = tool !== undefined
    this.#calls.set(number, { item, isGateway, extraContent, members, argumentText: '', isWhole: false })
  }

  #addArguments(event: EventOf<'tool_arguments'>): void {
    const call = this.#calls.get(event.index)
    if (call !== undefined && !call.isWhole) this.#addTo(call, event)
  }

  #addTo(call: OpenCall, event: EventOf<'tool_arguments'>): void {
    call.argumentText += event.delta
    call.item.add(event)
  }

  #holdCall(call: OpenCall | undefined, members: NativeObject | undefined): void {
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

  /** A call that the gateway runs ends with its result. */
  #endCall(call: OpenCall, isCut: boolean): void {
    const { item, isGateway, members } = call
    // The deltas must add up to the complete text.
    if (call.argumentText === '' && !isCut)
      this.#addTo(call, { type: 'tool_arguments', choice: 0, index: 0, delta: '{}' })
    if (!isGateway) this.close(item, { isCut, members })
    else if (!isCut) item.argumentsDone(call.argumentText)
  }

  #endGeneration({ reason, extraContent, hasBrokenCalls }: ChoiceEnd): void {
    const isCut = reason === 'length' || reason === 'content_filter'
    // A message without text holds the data behind calls.
    if (extraContent !== undefined && !isCut && this.#text === null) this.#beginText('message')
    if (this.#text !== null) this.#text.members = withExtraContent(this.#text.members, extraContent)
    this.#closeText(isCut)
    this.#releaseCall(isCut)
    for (const call of this.#calls.values()) {
      if (call.isWhole) continue
      // Engines may omit the end of their last call; it is complete unless the answer was cut off.
      call.isWhole = true
      this.#endCall(call, isCut && !(hasBrokenCalls === true && call.isGateway))
    }
  }
}
