/** Reads Harmony messages in text with control tokens. @hot */
import type { OutputSink, OutputStream } from '#kernel'
import { MAX_NAME_LENGTH } from '../calls/call-output.ts'
import type { CallIds } from '../output-stream.ts'
import { DONE, isSpace, JsonScanner } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { CALL, END, type HarmonyKind, MESSAGE, RETURN, readHeader, START } from './harmony-format.ts'

const MAX_HEADER = 1_024
const STARTS = new MarkerSearch([START])
/** Found: 0 the content begins; else the message is over before it did. */
const HEADER_ENDS = new MarkerSearch([MESSAGE, END, RETURN, CALL, START])
/** Found: 3 the next message, without an end of this one. */
const CONTENT_ENDS = new MarkerSearch([END, RETURN, CALL, START])

const HEADER = 0
const CONTENT = 1
const BETWEEN = 2

export class HarmonyStream implements OutputStream {
  readonly separatesReasoning = true
  toolCalls = 0
  readonly #sink: OutputSink
  readonly #ids: CallIds
  readonly #maxCalls: number
  /** Arguments of the current call. */
  readonly #json = new JsonScanner('raw', Number.MAX_SAFE_INTEGER)
  /** There is more than one JSON value in the arguments, or none. */
  #isBroken = false
  #input = ''
  #at = 0
  #isEnd = false
  #state = HEADER
  #header = ''
  #kind: HarmonyKind = 'text'
  #hasMessage = false
  #isFirstReasoning = true

  /** @param startsInAnswer the prompt ended inside of a final message */
  constructor(
    sink: OutputSink,
    { ids, maxCalls }: { readonly ids: CallIds; readonly maxCalls: number },
    startsInAnswer: boolean,
  ) {
    this.#sink = sink
    this.#ids = ids
    this.#maxCalls = maxCalls
    if (startsInAnswer) this.#begin('text', '')
  }

  get isReasoning(): boolean {
    return this.#state === CONTENT && this.#kind === 'reasoning'
  }

  push(text: string): void {
    this.#input = this.#at < this.#input.length ? this.#input.slice(this.#at) + text : text
    this.#at = 0
    while (this.#step());
  }

  end(isFinished = false): void {
    if (this.#isEnd) return
    this.#isEnd = true
    while (this.#step());
    if (this.#state === HEADER && !this.#hasMessage) this.#answer(this.#header)
    if (this.#state === CONTENT) this.#endMessage(isFinished)
    this.#state = BETWEEN
  }

  #step(): boolean {
    if (this.#state === HEADER) return this.#readHeader()
    if (this.#state === CONTENT) return this.#readContent()
    const place = STARTS.find(this.#input, this.#at)
    this.#at = place
    if (STARTS.found < 0) return false
    this.#at += START.length
    this.#header = ''
    this.#state = HEADER
    return true
  }

  #readHeader(): boolean {
    const place = HEADER_ENDS.find(this.#input, this.#at)
    const { found } = HEADER_ENDS
    const stop = Math.min(
      found < 0 && this.#isEnd ? this.#input.length : place,
      this.#at + MAX_HEADER - this.#header.length,
    )
    this.#header += this.#input.slice(this.#at, stop)
    this.#at = stop
    if (stop < place) {
      // No head is that long: the model writes without any.
      const text = this.#header
      this.#header = ''
      this.#begin('text', '')
      this.#answer(text)
      return true
    }
    if (found < 0) return false
    this.#at += HEADER_ENDS.markers[found].length
    if (found > 0) {
      this.#header = ''
      this.#state = HEADER_ENDS.markers[found] === START ? HEADER : BETWEEN
      return true
    }
    const { kind, name } = readHeader(this.#header)
    this.#header = ''
    const isCall = kind === 'call' && name.length <= MAX_NAME_LENGTH
    this.#begin(isCall || kind !== 'call' ? kind : 'text', name)
    return true
  }

  #begin(kind: HarmonyKind, name: string): void {
    this.#kind = kind
    this.#state = CONTENT
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
    const place = CONTENT_ENDS.find(this.#input, this.#at)
    const { found } = CONTENT_ENDS
    const stop = found < 0 && this.#isEnd ? this.#input.length : place
    if (stop > this.#at) {
      const isAll = this.#at === 0 && stop === this.#input.length
      this.#answer(isAll ? this.#input : this.#input.slice(this.#at, stop))
      this.#at = stop
    }
    if (found < 0) return false
    this.#at += CONTENT_ENDS.markers[found].length
    this.#endMessage(true)
    this.#state = found === 3 ? HEADER : BETWEEN
    return true
  }

  #answer(part: string): void {
    if (part === '') return
    if (this.#kind === 'text') this.#sink.text(part)
    else if (this.#kind === 'reasoning') this.#sink.reasoning(part)
    else if (this.#kind === 'call') this.#arguments(part)
  }

  /** Text that is not JSON is passed on as it is; its call is not complete. */
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
