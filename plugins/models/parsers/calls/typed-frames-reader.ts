/**
 * Reads calls out of typed frames, `<|message_model|>head<|content_…|>payload<|end_message|>`. @hot
 */

import { MORE } from '../scan/chunk-reader.ts'
import { FAILED, RUNNING } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import type { CallOutput } from './call-output.ts'
import { CallReader } from './call-reader.ts'
import { JsonCall } from './json-call.ts'

export const FRAME_TOKENS = [
  '<|message_model|>',
  '<|content_text|>',
  '<|content_thinking|>',
  '<|content_invoke_tool_json|>',
  '<|content_invoke_tool_text|>',
  '<|end_message|>',
  '<|content_model_end_sampling|>',
  '<|message_user|>',
  '<|message_system|>',
  '<|message_tool|>',
  '<|content_image|>',
  '<|content_audio|>',
  '<|content_xml|>',
  '<|content_tool_error|>',
  '<|endoftext|>',
  '<|audio_end|>',
] as const

export const MESSAGE = 0
export const TEXT_TYPE = 1
export const THINKING_TYPE = 2
export const CALL_TYPE = 3
export const OTHER_CALL_TYPE = 4
export const END = 5
export const END_SAMPLING = 6

const TOKENS = new MarkerSearch(FRAME_TOKENS)

export class TypedFramesReader extends CallReader {
  readonly #call: JsonCall

  constructor(out: CallOutput) {
    super(out)
    this.#call = new JsonCall(out, { nameKeys: ['name'], argumentKeys: ['args'], isStrict: true })
  }

  protected override get isClosing(): boolean {
    return this.step === this.#endCall
  }

  protected override readText(): boolean {
    return this.#readUntilToken(true)
  }

  /** The head of a frame, or a payload that is not part of the answer. */
  #skip(): boolean {
    return this.#readUntilToken(false)
  }

  #readUntilToken(isText: boolean): boolean {
    const place = TOKENS.find(this.input, this.at)
    const { found } = TOKENS
    const until = found < 0 && this.isEnd ? this.input.length : place
    if (isText) this.textUntil(until)
    else this.at = until
    if (found < 0) return false
    this.at += TOKENS.markers[found].length
    if (found === CALL_TYPE) {
      this.out.begin()
      this.#call.reset(this.out.options.limits.maxArgumentChars)
      return this.enter(this.#readCall)
    }
    if (found === MESSAGE || found === OTHER_CALL_TYPE) return this.enter(this.#skip)
    const isPayload =
      found === TEXT_TYPE || found === THINKING_TYPE || found === END || found === END_SAMPLING
    return !isPayload || this.enter(this.readText)
  }

  #readCall(): boolean {
    const stop = this.#call.feed(this.input, this.at)
    this.consume(stop - this.at)
    if (this.#call.status === RUNNING) {
      if (this.isEnd) this.out.discard()
      return false
    }
    if (this.#call.status === FAILED) {
      this.out.discard()
      return this.enter(this.#skip)
    }
    this.out.done()
    return this.enter(this.#endCall)
  }

  /** The end mark may be missing. */
  #endCall(): boolean {
    if (!this.isEnd) {
      if (!this.skipSpace()) return false
      if (this.match(FRAME_TOKENS[END]) === MORE) return false
    }
    this.out.close()
    return this.enter(this.readText)
  }
}
