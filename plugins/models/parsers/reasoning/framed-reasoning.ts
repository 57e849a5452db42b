/**
 * Reasoning in typed frames: thinking frames are reasoning, text frames are text, and frames of calls are passed on unchanged. @hot
 */
import {
  CALL_TYPE,
  END,
  END_SAMPLING,
  FRAME_TOKENS,
  MESSAGE,
  OTHER_CALL_TYPE,
  TEXT_TYPE,
  THINKING_TYPE,
} from '../calls/typed-frames-reader.ts'
import { JsonScanner, RUNNING } from '../scan/json-scanner.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { ReasoningReader } from './reasoning-reader.ts'

const TOKENS = new MarkerSearch(FRAME_TOKENS)

const CONTENT = 0
const SKIPPED = 1
const CALL = 2
const CALL_END = 3

export class FramedReasoningReader extends ReasoningReader {
  readonly #json = new JsonScanner('raw', Number.MAX_SAFE_INTEGER)
  #state = CONTENT

  protected override readText(): boolean {
    if (this.#state === CALL) {
      const stop = this.#json.feed(this.input, this.at, this.input.length)
      this.#json.take()
      this.flush(stop)
      if (this.#json.status === RUNNING) return false
      this.#state = CALL_END
      return true
    }
    const place = TOKENS.find(this.input, this.at)
    const { found } = TOKENS
    const until = found < 0 && this.isEnd ? this.input.length : place
    if (this.#state === SKIPPED) this.at = until
    else this.flush(until)
    if (found < 0) return false
    const length = FRAME_TOKENS[found].length
    if (found === CALL_TYPE) {
      this.inside = false
      this.flush(place + length)
      this.#json.reset('raw', Number.MAX_SAFE_INTEGER)
      this.#state = CALL
      return true
    }
    // A call's end mark belongs to the call.
    if (this.#state === CALL_END && found === END) this.flush(place + length)
    else this.at += length
    this.#enter(found)
    return true
  }

  #enter(token: number): void {
    if (token === MESSAGE || token === OTHER_CALL_TYPE) this.#state = SKIPPED
    else if (token === TEXT_TYPE || token === THINKING_TYPE || token === END || token === END_SAMPLING)
      this.#state = CONTENT
    if (token !== OTHER_CALL_TYPE) this.inside = token === THINKING_TYPE
  }
}
