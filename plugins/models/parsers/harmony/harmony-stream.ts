/** Reads Harmony messages in text with control tokens. @hot */
import type { OutputSink, OutputStream } from '#kernel'
import { MAX_NAME_LENGTH } from '../calls/call-output.ts'
import type { CallIds } from '../output-stream.ts'
import { ChunkReader, MORE, NO } from '../scan/chunk-reader.ts'
import { DONE, isSpace, JsonScanner } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { CALL, END, type HarmonyKind, MESSAGE, RETURN, readHeader, START } from './harmony-format.ts'

const MAX_HEADER = 1_024
const STARTS = new MarkerSearch([START])
/** Found: 0 the content begins; else the message is over before it did. */
const HEADER_ENDS = new MarkerSearch([MESSAGE, END, RETURN, CALL, START])
/** Found: 3 the next message, without an end of this one. */
const CONTENT_ENDS = new MarkerSearch([END, RETURN, CALL, START])

export class HarmonyStream extends ChunkReader implements OutputStream {
  readonly separatesReasoning = true
  toolCalls = 0
  readonly #sink: OutputSink
  readonly #ids: CallIds
  readonly #maxCalls: number
  /** Arguments of the current call. */
  readonly #json = new JsonScanner('raw', Number.MAX_SAFE_INTEGER)
  /** There is more than one JSON value in the arguments, or none. */
  #isBroken = false
  #kind: HarmonyKind = 'text'
  #hasMessage = false
  #isFirstReasoning = true

  /** @param startsInAnswer the prompt ended inside of a final message */
  constructor(
    sink: OutputSink,
    { ids, maxCalls }: { readonly ids: CallIds; readonly maxCalls: number },
    startsInAnswer: boolean,
  ) {
    super()
    this.#sink = sink
    this.#ids = ids
    this.#maxCalls = maxCalls
    if (startsInAnswer) this.#begin('text', '')
  }

  get isReasoning(): boolean {
    return this.step === this.#readContent && this.#kind === 'reasoning'
  }

  end(isFinished = false): void {
    if (this.isEnd) return
    this.finish()
    if (this.step === this.readText && !this.#hasMessage) this.#answer(this.gathered)
    if (this.step === this.#readContent) this.#endMessage(isFinished)
    this.enter(this.#skipToStart)
  }

  /** Text between two messages is dropped. */
  #skipToStart(): boolean {
    const place = STARTS.find(this.input, this.at)
    this.at = place
    if (STARTS.found < 0) return false
    this.at += START.length
    return this.enter(this.readText)
  }

  /** The header of a message. */
  protected override readText(): boolean {
    const is = this.readUntil(HEADER_ENDS, MAX_HEADER)
    if (is === MORE) return false
    const header = this.takeGathered()
    if (is === NO) {
      // No head is that long: the model writes without any.
      this.#begin('text', '')
      this.#answer(header)
      return true
    }
    const mark = HEADER_ENDS.markers[HEADER_ENDS.found]
    if (mark !== MESSAGE) return this.enter(mark === START ? this.readText : this.#skipToStart)
    const { kind, name } = readHeader(header)
    this.#begin(kind === 'call' && name.length > MAX_NAME_LENGTH ? 'text' : kind, name)
    return true
  }

  #begin(kind: HarmonyKind, name: string): void {
    this.#kind = kind
    this.enter(this.#readContent)
    this.#hasMessage = true
    if (kind !== 'call') {
      if (kind === 'reasoning' && !this.#isFirstReasoning) this.#sink.reasoning('\n')
      if (kind === 'reasoning') this.#isFirstReasoning = false
      return
    }
    if (this.toolCalls >= this.#maxCalls) {
      this.#kind = 'ignored'
      return
    }
    this.#json.reset('raw', Number.MAX_SAFE_INTEGER)
    this.#isBroken = false
    const index = this.toolCalls++
    this.#sink.toolCallStarted(index, this.#ids(index, name), name)
  }

  #readContent(): boolean {
    const place = CONTENT_ENDS.find(this.input, this.at)
    const { found } = CONTENT_ENDS
    const stop = found < 0 && this.isEnd ? this.input.length : place
    if (stop > this.at) {
      const isAll = this.at === 0 && stop === this.input.length
      this.#answer(isAll ? this.input : this.input.slice(this.at, stop))
      this.at = stop
    }
    if (found < 0) return false
    this.at += CONTENT_ENDS.markers[found].length
    this.#endMessage(true)
    return this.enter(found === 3 ? this.readText : this.#skipToStart)
  }

  #answer(part: string): void {
    if (part === '') return
    if (this.#kind === 'text') this.#sink.text(part)
    else if (this.#kind === 'reasoning') this.#sink.reasoning(part)
    else if (this.#kind === 'call') this.#arguments(part)
  }

  /** Text that is not JSON is passed on unchanged; its call is incomplete. */
  #arguments(part: string): void {
    const json = this.#json
    const stop = this.#isBroken ? 0 : json.feed(part, 0, part.length)
    let at = stop
    if (json.status === DONE) while (at < part.length && isSpace(part.charCodeAt(at))) at++
    this.#isBroken ||= at < part.length
    const delta = json.take() + (this.#isBroken ? part.slice(stop) : '')
    if (delta !== '') this.#sink.toolCallArguments(this.toolCalls - 1, delta)
  }

  /** @param isFinished the message has its end mark */
  #endMessage(isFinished: boolean): void {
    if (this.#kind === 'call') {
      if (isFinished && !this.#isBroken && this.#json.firstCode === 0) this.#arguments('{}')
      this.#json.finish()
      this.#sink.toolCallDone(this.toolCalls - 1, !this.#isBroken && this.#json.status === DONE)
    }
    this.#kind = 'text'
  }
}
