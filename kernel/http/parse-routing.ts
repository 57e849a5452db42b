/** The full parse behind the peek: for bodies whose bytes were doubtful, and for every malformed one. */
import type { RoutingPeek } from '../contracts/request.ts'
import { topLevelMembers } from '../wire/json-members.ts'
import { httpErrors } from './http-errors.ts'
import { doubtPosition, scanRouting } from './scan-json.ts'

/**
 * Parses a JSON body.
 * @throws json_parse_error (400) with the position of the fault, as byte offset, line and column
 */
export function parseJson(body: Buffer): unknown {
  if (body.length === 0) throw httpErrors.json_parse_error('it is empty')
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw httpErrors.json_parse_error.with({ cause }, describe(body, (cause as Error).message))
  }
}

/** V8 names a position only for some faults; for the others the structure scan finds it. */
function describe(body: Buffer, message: string): string {
  const found = /position (\d+)/.exec(message)
  const endsEarly = message.startsWith('Unexpected end')
  if (found === null && !endsEarly) scanRouting(body)
  const position = found !== null ? Number(found[1]) : endsEarly ? body.length : doubtPosition()
  const before = body.toString('utf8', 0, position)
  const line = before.split('\n').length
  const column = before.length - before.lastIndexOf('\n')
  const what = message.replace(/(,? in JSON)? at position[\s\S]*$|, (\.\.\.)?"[\s\S]*$/, '')
  return `${what} at position ${position} (line ${line}, column ${column})`
}

/** @throws json_parse_error, invalid_field */
export function parseRouting(body: Buffer): RoutingPeek {
  const value = parseJson(body)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw httpErrors.json_parse_error('it must be one object')
  }
  const { model = null, stream = null } = value as { model?: unknown; stream?: unknown }
  if (model !== null && typeof model !== 'string') {
    throw httpErrors.invalid_field.with({ param: 'model' }, 'model', 'must be a string')
  }
  if (stream !== null && typeof stream !== 'boolean') {
    throw httpErrors.invalid_field.with({ param: 'stream' }, 'stream', 'must be true or false')
  }
  const [modelStart, modelEnd] = model === null ? [-1, -1] : findModelValue(body)
  return { model, stream: stream === true, modelStart, modelEnd }
}

/** Byte range of the last top-level `model` value of a body that is known to parse. */
function findModelValue(body: Buffer): [number, number] {
  const member = topLevelMembers(body)?.findLast(({ name }) => name === 'model')
  return member === undefined ? [-1, -1] : [member.valueStart, member.valueEnd]
}
