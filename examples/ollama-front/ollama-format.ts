/** Answers of workers that serve the API of Ollama themselves, which are relayed: their end and their token usage. */
import type { ObservedEnd, ResponseFormat, ResponseObserver, TokenUsage } from 'weir-gateway'

/** What is read of a line, and of a whole answer. */
interface Line {
  readonly done?: boolean
  readonly error?: string
  readonly prompt_eval_count?: number
  readonly eval_count?: number
}

const LF = 0x0a
/** The last line has the counts; quotes in a text are escaped, so that it cannot look like this. */
const LAST = /"(done"\s?:\s?true|error"\s?:)/
/** A longer line is no answer of Ollama: the rest of the stream passes unread. */
const MAX_LINE_BYTES = 1_048_576
const NO_BYTES = Buffer.alloc(0)

export const ollamaFormat: ResponseFormat = {
  observe: () => new OllamaObserver(),
  usageOf: (body) => usageOf(readLine(body)),
}

class OllamaObserver implements ResponseObserver {
  #line: Buffer = NO_BYTES
  #end: ObservedEnd['end'] = 'cut'
  #usage: TokenUsage | null = null
  #outputEvents = 0
  #unreadBytes = 0

  chunk(bytes: Buffer): Buffer {
    if (this.#unreadBytes > 0) this.#unreadBytes += bytes.length
    else this.#read(Buffer.concat([this.#line, bytes]))
    return bytes
  }

  #read(bytes: Buffer): void {
    let start = 0
    for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, start)) {
      this.#take(bytes.subarray(start, at))
      start = at + 1
    }
    this.#line = bytes.subarray(start)
    if (this.#line.length > MAX_LINE_BYTES) this.#unreadBytes = this.#line.length
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return
    const line = LAST.test(bytes.toString('latin1')) ? readLine(bytes) : null
    if (line?.error !== undefined) this.#end = 'error'
    else if (line?.done === true) this.#end = 'complete'
    else this.#outputEvents++
    this.#usage = usageOf(line) ?? this.#usage
  }

  end(): ObservedEnd {
    if (this.#unreadBytes === 0) this.#take(this.#line)
    return {
      end: this.#unreadBytes > 0 ? 'complete' : this.#end,
      rest: NO_BYTES,
      usage: this.#usage,
      hasOutputUsage: this.#usage !== null,
      outputEvents: this.#outputEvents,
      unreadBytes: this.#unreadBytes,
    }
  }
}

/** Null for a line that is no JSON object. */
function readLine(bytes: Buffer): Line | null {
  try {
    return Object(JSON.parse(bytes.toString('utf8'))) as Line
  } catch {
    return null
  }
}

function usageOf(line: Line | null): TokenUsage | null {
  const output = line?.eval_count
  if (typeof output !== 'number') return null
  return { input: Number(line?.prompt_eval_count ?? 0), output, cached: 0, reasoning: 0 }
}
