/** Responses of SGLang's `/generate` that are relayed: their usage is in the `meta_info` of each answer. @hot */
import {
  type ObservedEnd,
  type ResponseFormat,
  type ResponseObserver,
  type StreamEnd,
  sumOfUsage,
  type TokenUsage,
  valueAt,
} from '#kernel'
import { EventObserver, endOfBody } from '#shared'

const TEXT = Buffer.from('"text"')
const META_INFO = Buffer.from('"meta_info"')
const PROMPT = Buffer.from('"prompt_tokens"')
const COMPLETION = Buffer.from('"completion_tokens"')
const CACHED = Buffer.from('"cached_tokens"')
const MAX_DIGITS = 15
const INDEX = /"index"\s?:\s?(\d{1,4})/
/** Longer than a member of `meta_info` with its count. */
const MEMBER_BYTES = 64
const NO_BYTES = Buffer.alloc(0)

export const generateFormat: ResponseFormat = {
  observe: ({ isEventStream }) => (isEventStream ? new GenerateObserver() : new MetaInfoSum()),
  usageOf: (body) => usageOfMetaInfo(body),
}

class GenerateObserver extends EventObserver {
  /** By answer: the counts of each event replace those of the event before. */
  readonly #byIndex = new Map<string, TokenUsage>()

  constructor() {
    super(TEXT)
  }

  protected override findUsage(events: Buffer, from: number): number {
    return events.indexOf(META_INFO, from)
  }

  protected override readUsage(event: Buffer): void {
    const usage = usageOfMetaInfo(event)
    if (usage !== null) this.#byIndex.set(INDEX.exec(event.toString('latin1'))?.[1] ?? '0', usage)
  }

  protected override get usage(): TokenUsage | null {
    return this.hasOutputUsage ? [...this.#byIndex.values()].reduce(sumOfUsage) : null
  }

  protected override get hasOutputUsage(): boolean {
    return this.#byIndex.size > 0
  }

  protected override endOf(): StreamEnd {
    return 'complete'
  }
}

/** Of a body that passes in parts. */
class MetaInfoSum implements ResponseObserver {
  #sum: TokenUsage | null = null
  /** Bytes in which a member may be incomplete. */
  #rest: Buffer = NO_BYTES
  #bodyBytes = 0

  chunk(chunk: Buffer): Buffer {
    const bytes = Buffer.concat([this.#rest, chunk])
    const until = Math.max(0, bytes.length - MEMBER_BYTES)
    this.#add(usageOfMetaInfo(bytes, until))
    this.#rest = bytes.subarray(until)
    this.#bodyBytes += chunk.length
    return chunk
  }

  end(): ObservedEnd {
    this.#add(usageOfMetaInfo(this.#rest))
    return endOfBody(this.#sum, this.#bodyBytes)
  }

  #add(usage: TokenUsage | null): void {
    if (usage !== null) this.#sum = this.#sum === null ? usage : sumOfUsage(this.#sum, usage)
  }
}

/**
 * Adds up the counts of `meta_info` of SGLang's `/generate`, one per answer.
 *
 * @param bytes of a body, or one event
 * @param until members that begin at this offset or later are not counted; default: all are
 */
function usageOfMetaInfo(bytes: Buffer, until = bytes.length): TokenUsage | null {
  const input = sumOf(bytes, PROMPT, until)
  const output = sumOf(bytes, COMPLETION, until)
  const cached = sumOf(bytes, CACHED, until)
  return input === 0 && output === 0 && cached === 0 ? null : { input, output, cached, reasoning: 0 }
}

function sumOf(bytes: Buffer, name: Buffer, until: number): number {
  let sum = 0
  for (let at = bytes.indexOf(name); at >= 0 && at < until; at = bytes.indexOf(name, at + name.length))
    sum += readInteger(bytes, valueAt(bytes, at + name.length))
  return sum
}

function readInteger(bytes: Buffer, from: number): number {
  let value = 0
  for (let at = from; at < bytes.length && at < from + MAX_DIGITS; at++) {
    const digit = bytes[at] - 0x30
    if (digit < 0 || digit > 9) break
    value = value * 10 + digit
  }
  return value
}
