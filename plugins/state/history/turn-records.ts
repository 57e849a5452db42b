/** Records of a turn: its position in the chain, its JSON, and the write for turns that need no read. */
import { type FinishedResponse, JsonText } from '#kernel'
import type { ChainReader } from './chain-reader.ts'
import { ChangeList } from './change-list.ts'
import { ageId, type ChainPosition, type Collections, turnId } from './collections.ts'

const FRESH_MS = 60_000

/** Whether the id ends with a version 7 UUID of the last minute. */
export function isFreshId(id: string): boolean {
  const uuid = /_([0-9a-f]{12})7[0-9a-f]{19}$/.exec(id)
  return uuid !== null && Math.abs(Date.now() - Number.parseInt(uuid[1], 16)) < FRESH_MS
}

/** Position of the first turn of a new chain. */
export function rootPosition(id: string, { input, output }: ItemTexts, isBased: boolean): ChainPosition {
  return { chain: id, turn: 0, depth: 1, bytes: input.length + output.length, isBased }
}

/** Position after the parent in the same chain. */
export function nextPosition(
  { chain, turn, depth, bytes, isBased }: ChainPosition,
  { input, output }: ItemTexts,
): ChainPosition {
  const grown = bytes + input.length + output.length
  return { chain, turn: turn + 1, depth: depth + 1, bytes: grown, isBased }
}

/**
 * The write for a new response without a parent, or whose parent is cached.
 * @returns null if records must be read first
 */
export function turnWithoutReads(
  tenant: string,
  record: FinishedResponse,
  { responses, ages, turns, items }: Collections,
  chains: ChainReader,
): { readonly list: ChangeList; readonly place: ChainPosition } | null {
  const { id, status, previousResponseId, input, output, createdAtSec, hasNewIds = false } = record
  if (status !== 'completed' && status !== 'incomplete') return null
  if (!hasNewIds) for (const item of input) if (!isFreshId(item.id)) return null
  const parent = previousResponseId === null ? null : chains.placeOf(tenant, previousResponseId)
  if (parent === undefined) return null
  const texts = itemTextsOf(record)
  const place = parent === null ? rootPosition(id, texts, false) : nextPosition(parent, texts)
  const turn = turnId(place.chain, place.turn)
  const list = new ChangeList(tenant)
  // Each condition costs a read.
  const ifNew = hasNewIds ? undefined : null
  // The first turn of a chain has the id of the response, whose record already has the condition.
  list.put(turns, turn, turnText(id, texts), parent === null ? undefined : null)
  const seen = new Set<string>()
  for (const item of input) {
    if (seen.has(item.id)) continue
    seen.add(item.id)
    list.put(items, item.id, { turn }, ifNew)
  }
  for (const item of output) if (!seen.has(item.id)) list.put(items, item.id, { turn })
  list.put(responses, id, responseText(record, place, texts), ifNew)
  list.put(ages, ageId(createdAtSec, id), list.textBytes)
  return { list, place }
}

/** JSON of input and output, stored in the turn, or in the response record if there is no turn. */
export interface ItemTexts {
  readonly input: string
  readonly output: string
}

export function itemTextsOf({ input, output, outputText }: FinishedResponse): ItemTexts {
  return { input: JSON.stringify(input), output: outputText ?? JSON.stringify(output) }
}

/** JSON of a `Turn`. */
export function turnText(id: string, { input, output }: ItemTexts): JsonText {
  return new JsonText(`{"id":${JSON.stringify(id)},"input":${input},"output":${output}}`)
}

/** JSON of a `StoredResponse`. */
export function responseText(
  record: FinishedResponse,
  place: ChainPosition | null,
  items: ItemTexts,
): JsonText {
  const { createdAtSec, status, reply, previousResponseId, conversationId, facts } = record
  const replyText = reply instanceof JsonText ? reply.text : JSON.stringify(reply)
  const past = `"previousResponseId":${idText(previousResponseId)},"conversationId":${idText(conversationId)}`
  const head = `{"createdAtSec":${createdAtSec},"status":"${status}","reply":${replyText},${past}`
  const tail = `,"facts":${JSON.stringify(facts)},"place":${place === null ? 'null' : JSON.stringify(place)}`
  return new JsonText(
    place === null ? `${head}${tail},"input":${items.input},"output":${items.output}}` : `${head}${tail}}`,
  )
}

function idText(id: string | null): string {
  return id === null ? 'null' : JSON.stringify(id)
}
