/**
 * Adds the bootstrap members to both requests of a prefill/decode pair: host and port of the prefill worker's bootstrap
 * server, and a room for each engine request, by which the two engines find each other.
 */

import type { PairCall, PairRequests, UpstreamRequest } from '#kernel'
import {
  arrayShape,
  type BootstrapServer,
  bootstrapHostOf,
  drawRoom,
  topLevelMembers,
  withMembers,
} from '#shared'
import { pairErrors } from './errors.ts'

/** Maximum rooms of one request: the client decides their number, and each costs bytes in both bodies. */
const MAX_ROOMS = 4_096
const QUOTE = 0x22
const OPEN_BRACKET = 0x5b

/** Members whose arrays hold one prompt per element; an array of token ids is one prompt. */
const PROMPT_MEMBERS: ReadonlySet<string> = new Set(['prompt', 'text', 'input_ids'])

/**
 * The bootstrap members of both bodies, as JSON text by name.
 *
 * @param draw a random number below 2^63
 * @returns null if the body is not a JSON object
 * @throws pd_batch_too_large (400)
 */
export function bootstrapMembers(
  body: Buffer,
  prefill: BootstrapServer,
  draw: () => bigint = () => drawRoom(63),
): Map<string, string> | null {
  const size = batchSize(body)
  if (size === null) return null
  if (size > MAX_ROOMS) throw pairErrors.pd_batch_too_large(MAX_ROOMS)
  const host = JSON.stringify(bootstrapHostOf(prefill))
  const port = String(prefill.bootstrapPort)
  if (size === 0) {
    return new Map([
      ['bootstrap_host', host],
      ['bootstrap_port', port],
      ['bootstrap_room', String(draw())],
    ])
  }
  const rooms = new Set<bigint>()
  while (rooms.size < size) rooms.add(draw())
  return new Map([
    ['bootstrap_host', toArray(Array<string>(size).fill(host))],
    ['bootstrap_port', toArray(Array<string>(size).fill(port))],
    // As bigint digits, since a double would round them.
    ['bootstrap_room', toArray([...rooms].map(String))],
  ])
}

/**
 * Number of engine requests in a batch: one per prompt of an array, or `n`. 0 if the body is not a batch, null if it is not a
 * JSON object.
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

function toArray(texts: readonly string[]): string {
  return `[${texts.join(',')}]`
}

const NO_BODY = Buffer.alloc(0)

/** @throws request_preparation_failed (400), pd_batch_too_large (400) */
export function withBootstrap(pair: PairCall, whole: PairRequests): PairRequests {
  const members = bootstrapMembers(whole.prefill.body ?? NO_BODY, pair.prefill)
  if (members === null) throw pairErrors.request_preparation_failed()
  return { prefill: addMembers(whole.prefill, members), decode: addMembers(whole.decode, members) }
}

function addMembers(request: UpstreamRequest, members: ReadonlyMap<string, string>): UpstreamRequest {
  const body = withMembers(request.body ?? NO_BODY, members)
  if (body === null) throw pairErrors.request_preparation_failed()
  return { ...request, body }
}

/** Whether the client requests log probabilities of its prompt; `return_logprob` is a boolean or a list of booleans. */
export function wantsPromptLogprobs(body: Buffer | null): boolean {
  if (body === null) return false
  const member = topLevelMembers(body)?.findLast(({ name }) => name === 'return_logprob')
  return member !== undefined && body.toString('latin1', member.valueStart, member.valueEnd).includes('true')
}
