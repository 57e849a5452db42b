/**
 * How the two workers of a prefill/decode pair find each other: both requests carry the same three members, which
 * name the prefill worker's meeting point and a room there for each engine request.
 */
import { randomFillSync } from 'node:crypto'
import type { WorkerEntry } from '#kernel'
import { arrayShape, topLevelMembers } from '#shared'
import { pairErrors } from './errors.ts'

/** Rooms of one request at most: a client decides how many there are, and each costs bytes in both bodies. */
const MAX_ROOMS = 4_096
const QUOTE = 0x22
const OPEN_BRACKET = 0x5b

/** Members whose arrays hold one prompt an element, unless the elements are token ids: then the array is one prompt. */
const PROMPT_MEMBERS: ReadonlySet<string> = new Set(['prompt', 'text', 'input_ids'])

/** Where a prefill worker is met. */
export type MeetingPoint = Pick<WorkerEntry, 'url' | 'bootstrapHost' | 'bootstrapPort' | 'dataParallel'>

/**
 * The members for both bodies, as JSON text by name.
 *
 * @param drawRoom a random number below 2^63
 * @returns null when the body is no JSON object
 * @throws pd_batch_too_large (400)
 */
export function bootstrapMembers(
  body: Buffer,
  prefill: MeetingPoint,
  drawRoom: () => bigint = randomRoom,
): Map<string, string> | null {
  const size = batchSize(body)
  if (size === null) return null
  if (size > MAX_ROOMS) throw pairErrors.pd_batch_too_large(MAX_ROOMS)
  const host = JSON.stringify(prefill.bootstrapHost ?? hostOf(prefill))
  const port = String(prefill.bootstrapPort)
  if (size === 0) {
    return new Map([
      ['bootstrap_host', host],
      ['bootstrap_port', port],
      ['bootstrap_room', String(drawRoom())],
    ])
  }
  const rooms = new Set<bigint>()
  while (rooms.size < size) rooms.add(drawRoom())
  return new Map([
    ['bootstrap_host', toArray(Array<string>(size).fill(host))],
    ['bootstrap_port', toArray(Array<string>(size).fill(port))],
    // Written digit by digit: a float would round numbers of this size.
    ['bootstrap_room', toArray([...rooms].map(String))],
  ])
}

/**
 * How many engine requests the body is a batch of: one a prompt of an array, or `n`. 0 when it is no batch, null when
 * the body is no JSON object.
 */
export function batchSize(body: Buffer): number | null {
  const members = topLevelMembers(body)
  if (members === null) return null
  let copies = 0
  for (const { name, valueStart, valueEnd } of members) {
    if (PROMPT_MEMBERS.has(name)) {
      const prompts = promptCount(body, valueStart)
      if (prompts > 0) return prompts
    } else if (name === 'n') copies = copiesOf(body, valueStart, valueEnd)
    else if (name === 'sampling_params') copies = copiesIn(body.subarray(valueStart, valueEnd)) || copies
  }
  return copies > 1 ? copies : 0
}

function promptCount(body: Buffer, start: number): number {
  const shape = arrayShape(body, start)
  if (shape === null) return 0
  return shape.firstByte === QUOTE || shape.firstByte === OPEN_BRACKET ? shape.length : 0
}

function copiesOf(body: Buffer, start: number, end: number): number {
  const text = body.toString('latin1', start, end)
  const copies = Number(text)
  return Number.isSafeInteger(copies) ? copies : 0
}

function copiesIn(samplingParams: Buffer): number {
  const n = topLevelMembers(samplingParams)?.findLast(({ name }) => name === 'n')
  return n === undefined ? 0 : copiesOf(samplingParams, n.valueStart, n.valueEnd)
}

function hostOf({ url, dataParallel }: MeetingPoint): string {
  // Any scheme with a host parses alike once it is one that the parser knows.
  const base = (dataParallel?.baseUrl ?? url).replace(/^grpc(s?):/, 'http$1:')
  const host = URL.parse(base)?.hostname ?? 'localhost'
  return host.startsWith('[') ? host.slice(1, -1) : host
}

function toArray(texts: readonly string[]): string {
  return `[${texts.join(',')}]`
}

const roomBytes = new BigUint64Array(1)
const LARGEST_ROOM = 2n ** 63n - 1n

function randomRoom(): bigint {
  randomFillSync(roomBytes)
  return roomBytes[0] & LARGEST_ROOM
}
