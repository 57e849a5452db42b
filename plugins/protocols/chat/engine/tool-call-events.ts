/**
 * The tool calls of one choice. Engines number them from 0, number all of them 0 and change the id, leave out ids, send
 * arguments before the name, or send all arguments again at the end: what goes on is one call after the other, each
 * announced once with id and name. @hot
 */
import { randomBytes } from 'node:crypto'
import { type EngineSink, isObject, type NativeObject } from '#kernel'
import { tryParseJson } from '#shared'
import type { UncheckedToolCall } from '../wire/chat.ts'

/** Calls beyond this are ignored as an error of the worker. */
const MAX_CALLS = 1_024

interface OpenToolCall {
  /** From 0; -1 until the call is emitted. */
  index: number
  id: string
  name: string
  /** So far, including those that wait for the name. */
  arguments: string
  extraContent: NativeObject | undefined
  isDone: boolean
}

export class ToolCallEvents {
  readonly #choice: number
  readonly #sink: EngineSink
  /** The last call of each number that the engine gave. */
  readonly #byNumber = new Map<number, OpenToolCall>()
  readonly #open: OpenToolCall[] = []
  #count = 0

  constructor(choice: number, sink: EngineSink) {
    this.#choice = choice
    this.#sink = sink
  }

  add(calls: readonly unknown[]): void {
    for (const [position, call] of calls.entries()) {
      if (isObject(call)) this.#addOne(call as UncheckedToolCall, position)
    }
  }

  #addOne(given: UncheckedToolCall, position: number): void {
    const { index, id, function: called } = given
    const number = typeof index === 'number' ? index : position
    let call = this.#byNumber.get(number)
    const name = called?.name
    const isNamed = typeof name === 'string' && name !== ''
    // Without a name it is the same call: its id came late, or the engine makes a new id for each chunk.
    const isNew =
      isNamed && typeof id === 'string' && id !== '' && call !== undefined && call.id !== '' && call.id !== id
    if (call === undefined || isNew) {
      if (this.#open.length >= MAX_CALLS) return
      call = { index: -1, id: '', name: '', arguments: '', extraContent: undefined, isDone: false }
      this.#byNumber.set(number, call)
      this.#open.push(call)
    }
    if (call.index < 0) {
      if (typeof id === 'string' && id !== '') call.id = id
      if (isNamed) call.name += name
      if (isObject(given.extra_content)) call.extraContent = given.extra_content
    }
    this.#arguments(call, called?.arguments)
  }

  #arguments(call: OpenToolCall, given: unknown): void {
    const fragment = typeof given === 'string' ? given : isObject(given) ? JSON.stringify(given) : ''
    if (call.index < 0 && call.name !== '' && (fragment !== '' || call.id !== '')) this.#announce(call)
    if (fragment === '' || (fragment === call.arguments && tryParseJson(fragment) !== undefined)) return
    call.arguments += fragment
    if (call.index >= 0) this.#emit(call, fragment)
  }

  #announce(call: OpenToolCall): void {
    call.index = this.#count++
    if (call.id === '') call.id = `call_${randomBytes(12).toString('hex')}`
    this.#sink.emit({
      type: 'tool_call',
      choice: this.#choice,
      index: call.index,
      id: call.id,
      name: call.name,
      ...(call.extraContent !== undefined && { extraContent: call.extraContent }),
    })
    if (call.arguments !== '') this.#emit(call, call.arguments)
  }

  #emit(call: OpenToolCall, delta: string): void {
    this.#sink.emit({ type: 'tool_arguments', choice: this.#choice, index: call.index, delta })
  }

  /** Ends every call whose arguments are JSON, or missing. */
  end(): 'none' | 'complete' | 'cut' {
    let isCut = false
    for (const call of this.#open) {
      if (call.index < 0 && call.name !== '') this.#announce(call)
      if (call.index < 0 || call.isDone) continue
      call.isDone = call.arguments.trim() === '' || tryParseJson(call.arguments) !== undefined
      if (call.isDone) this.#sink.emit({ type: 'tool_call_done', choice: this.#choice, index: call.index })
      else isCut = true
    }
    if (isCut) return 'cut'
    return this.#count > 0 ? 'complete' : 'none'
  }
}
