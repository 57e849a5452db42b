/** Request bodies as JSON: finds routing values in the bytes, parses bodies, explains errors. @hot */
import type { RoutingPeek } from '../contracts/request.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import { skipSpace } from '../wire/json-bytes.ts'
import { JsonScan, MAX_MODEL_BYTES, type ScanState } from '../wire/json-scan.ts'
import { httpErrors } from './http-errors.ts'

/** Each takes many times its two bytes of text in memory. */
const MAX_CONTAINERS = 131_072
const MAX_COMMAS = 2_097_152

/** For longer bodies only the position of an error is reported, because an explanation requires parsing. */
const MAX_EXPLAINED_BYTES = 262_144

/** One per thread, for scans that are not done in steps. */
const shared = new JsonScan()

/**
 * Finds the top-level `model` and `stream` of a body on its bytes, without parsing it.
 *
 * @param maxDepth deepest nesting that is allowed
 * @throws json_parse_error, json_too_deep, invalid_field (400)
 */
export function peekRouting(body: Buffer, maxDepth: number): RoutingPeek {
  return toPeek(body, shared, shared.begin(body, maxDepth).run(body.length))
}

/** @param scan completed scan */
export function toPeek(body: Buffer, scan: JsonScan, state: ScanState): RoutingPeek {
  if (state !== 'whole') throw scanFault(body, scan, state)
  if (!scan.isObject) throw httpErrors.json_parse_error(`must be one JSON object (got ${kindOf(body)})`)
  if (scan.hasWrongModel) throw invalidField('model', `must be a string of at most ${MAX_MODEL_BYTES} bytes`)
  if (scan.hasWrongStream) throw invalidField('stream', 'must be true or false')
  const { model, stream, modelStart, modelEnd, streamOptionsStart } = scan
  return { model, stream, modelStart, modelEnd, streamOptionsStart }
}

/** A completed scan and its result. */
export interface ScannedBody {
  readonly scan: JsonScan
  readonly state: ScanState
}

/**
 * @param scanned result of an earlier scan; null if there was none
 * @throws json_parse_error (400) with the position of the fault, json_too_deep, json_too_complex (400)
 */
export function parseJson(body: Buffer, maxDepth: number, scanned: ScannedBody | null): unknown {
  const scan = scanned?.scan ?? shared.begin(body, maxDepth)
  const state = scanned?.state ?? scan.run(body.length)
  if (state !== 'whole') throw scanFault(body, scan, state)
  if (scan.containers > MAX_CONTAINERS)
    throw httpErrors.json_too_complex(MAX_CONTAINERS, 'objects and arrays')
  if (scan.commas > MAX_COMMAS) throw httpErrors.json_too_complex(MAX_COMMAS, 'values')
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw parseFault(body, cause, scan.at)
  }
}

/** @param body valid JSON, but no object */
function kindOf(body: Buffer): string {
  switch (body[skipSpace(body, 0)]) {
    case 0x5b:
      return 'an array'
    case 0x22:
      return 'a string'
    default:
      return 'a number, true, false or null'
  }
}

function scanFault(body: Buffer, scan: JsonScan, state: ScanState): GatewayError {
  const { at, maxDepth } = scan
  if (state === 'too_deep') return httpErrors.json_too_deep(maxDepth, at)
  if (body.length === 0) return httpErrors.json_parse_error('is not valid JSON: it is empty')
  if (body.length <= MAX_EXPLAINED_BYTES) {
    try {
      JSON.parse(body.toString('utf8'))
    } catch (cause) {
      return parseFault(body, cause, at)
    }
  }
  return httpErrors.json_parse_error(
    `is not valid JSON: unexpected ${at >= body.length ? 'end' : 'token'} at position ${at}`,
  )
}

/** V8 reports a position for some errors only; the scan finds it for the others. */
function parseFault(body: Buffer, cause: unknown, at: number): GatewayError {
  const { message } = cause as Error
  const found = /position (\d+)/.exec(message)
  const endsEarly = message.startsWith('Unexpected end')
  const position = found !== null ? Number(found[1]) : endsEarly ? body.length : at
  const what = message.replace(/(,? in JSON)? at position[\s\S]*$|, (\.\.\.)?"[\s\S]*$/, '')
  const place = body.length <= MAX_EXPLAINED_BYTES ? ` (${placeOf(body, position)})` : ''
  return httpErrors.json_parse_error.with(
    { cause },
    `is not valid JSON: ${what} at position ${position}${place}`,
  )
}

function placeOf(body: Buffer, position: number): string {
  const before = body.toString('utf8', 0, position)
  return `line ${before.split('\n').length}, column ${before.length - before.lastIndexOf('\n')}`
}

function invalidField(name: string, problem: string): GatewayError {
  return httpErrors.invalid_field.with({ param: name }, name, problem)
}

/** Shorter bodies are scanned when they are first read. */
export const MIN_LONG_BYTES = 262_144
/** Bytes per step; a step takes less than a millisecond for any input. */
const STEP_BYTES = 65_536

interface LongBody {
  readonly body: Buffer
  readonly scan: JsonScan
  readonly isWanted: () => boolean
  readonly done: (scanned: ScannedBody) => void
}

/** Scans long bodies in steps and in turn, so that no request waits for the complete scan of another body. */
export class LongBodies {
  readonly #waiting: LongBody[] = []
  readonly #maxDepth: number
  #isRunning = false

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth
  }

  /**
   * @param isWanted false once the request has ended; the scan is then dropped
   * @param done called asynchronously; must not throw
   */
  scan(body: Buffer, isWanted: () => boolean, done: (scanned: ScannedBody) => void): void {
    const scan = new JsonScan().begin(body, this.#maxDepth)
    this.#waiting.push({ body, scan, isWanted, done })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    setImmediate(() => this.#step())
  }

  #step(): void {
    this.#isRunning = false
    const next = this.#waiting.shift()
    if (next === undefined) return
    if (next.isWanted()) {
      const { scan, body } = next
      const state = scan.run(Math.min(body.length, scan.reached + STEP_BYTES))
      // Back of the queue: a short body does not wait for a long one.
      if (state === 'more') this.#waiting.push(next)
      else next.done({ scan, state })
    }
    if (this.#waiting.length > 0) this.#schedule()
  }
}
