/** What is told of a body that is no JSON, or not the JSON that was asked for. */
import type { GatewayError } from '../errors/gateway-error.ts'
import { type JsonScan, MAX_MODEL_BYTES, type ScanState } from '../wire/json-scan.ts'
import { httpErrors } from './http-errors.ts'

/** Of longer bodies only the place of the fault is told: to find words for it, they would have to be parsed. */
const MAX_EXPLAINED_BYTES = 262_144

export function scanFault(body: Buffer, scan: JsonScan, state: ScanState): GatewayError {
  const { at, maxDepth } = scan
  if (state === 'too_deep') return httpErrors.json_too_deep(maxDepth, at)
  if (body.length === 0) return httpErrors.json_parse_error('it is empty')
  if (body.length <= MAX_EXPLAINED_BYTES) {
    try {
      JSON.parse(body.toString('utf8'))
    } catch (cause) {
      return parseFault(body, cause, at)
    }
  }
  return httpErrors.json_parse_error(`unexpected ${at >= body.length ? 'end' : 'token'} at position ${at}`)
}

/** V8 names a position only for some faults; the scan knows it for the others. */
export function parseFault(body: Buffer, cause: unknown, at: number): GatewayError {
  const { message } = cause as Error
  const found = /position (\d+)/.exec(message)
  const endsEarly = message.startsWith('Unexpected end')
  const position = found !== null ? Number(found[1]) : endsEarly ? body.length : at
  const what = message.replace(/(,? in JSON)? at position[\s\S]*$|, (\.\.\.)?"[\s\S]*$/, '')
  const place = body.length <= MAX_EXPLAINED_BYTES ? ` (${placeOf(body, position)})` : ''
  return httpErrors.json_parse_error.with({ cause }, `${what} at position ${position}${place}`)
}

function placeOf(body: Buffer, position: number): string {
  const before = body.toString('utf8', 0, position)
  return `line ${before.split('\n').length}, column ${before.length - before.lastIndexOf('\n')}`
}

export function notAnObject(): GatewayError {
  return httpErrors.json_parse_error('it must be one object')
}

export function modelFault(): GatewayError {
  return httpErrors.invalid_field.with(
    { param: 'model' },
    'model',
    `must be a string of at most ${MAX_MODEL_BYTES} bytes`,
  )
}

export function streamFault(): GatewayError {
  return httpErrors.invalid_field.with({ param: 'stream' }, 'stream', 'must be true or false')
}
