/** What a client gets of a relayed response, however its bytes are split. */
import type { ObservedEnd, RequestFacts, ResponseFormat } from '#kernel'

export interface Observed extends ObservedEnd {
  /** Bytes for the client, those that were held back until the end included. */
  readonly text: string
}

/**
 * Passes a response in parts.
 *
 * @param cuts positions between the parts, modulo its length
 * @param removesUsage as `ObservedResponse.removesUsage`
 */
export function observe(
  format: ResponseFormat,
  response: string,
  { cuts = [], removesUsage = false, isEventStream = true }: ObserveOptions = {},
): Observed {
  const observer = format.observe({
    request: {} as RequestFacts,
    isEventStream,
    removesUsage,
  })
  const bytes = Buffer.from(response)
  const passed: Buffer[] = []
  const ends = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b)
  let at = 0
  for (const end of [...ends, bytes.length]) {
    // The memory of a chunk is reused after the call.
    const chunk = Buffer.from(bytes.subarray(at, end))
    if (chunk.length > 0) passed.push(Buffer.from(observer.chunk(chunk)))
    chunk.fill(0)
    at = end
  }
  const end = observer.end()
  return { ...end, text: Buffer.concat([...passed, end.rest]).toString() }
}

interface ObserveOptions {
  readonly cuts?: readonly number[]
  readonly removesUsage?: boolean
  readonly isEventStream?: boolean
}
