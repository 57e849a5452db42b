/** A turn that nothing has to be read for: of a new response without a past, or with one that is in memory. */
import type { FinishedResponse } from '#kernel'
import type { ChainReader } from './chain-reader.ts'
import { ageId, ChangeList, type Collections, type Place, turnId } from './collections.ts'
import { type ItemTexts, itemTextsOf, responseText, turnText } from './record-text.ts'

const FRESH_MS = 60_000

/** Ends with a version 7 UUID of the last minute. */
export function isFreshId(id: string): boolean {
  const uuid = /_([0-9a-f]{12})7[0-9a-f]{19}$/.exec(id)
  return uuid !== null && Math.abs(Date.now() - Number.parseInt(uuid[1], 16)) < FRESH_MS
}

/** The first turn of a chain of its own. */
export function rootPlace(id: string, { input, output }: ItemTexts, isBased: boolean): Place {
  return { chain: id, turn: 0, depth: 1, bytes: input.length + output.length, isBased }
}

/** Behind its parent, in the same chain. */
export function nextPlace(
  { chain, turn, depth, bytes, isBased }: Place,
  { input, output }: ItemTexts,
): Place {
  const grown = bytes + input.length + output.length
  return { chain, turn: turn + 1, depth: depth + 1, bytes: grown, isBased }
}

/** @returns what is to be written, or null for a response that is not as plain as that */
export function plainTurn(
  tenant: string,
  record: FinishedResponse,
  { responses, ages, turns, items }: Collections,
  chains: ChainReader,
): { readonly list: ChangeList; readonly place: Place } | null {
  const { id, status, previousResponseId, input, output, createdAtSec, hasNewIds = false } = record
  if (status !== 'completed' && status !== 'incomplete') return null
  if (!hasNewIds) for (const item of input) if (!isFreshId(item.id)) return null
  const parent = previousResponseId === null ? null : chains.placeOf(tenant, previousResponseId)
  if (parent === undefined) return null
  const texts = itemTextsOf(record)
  const place = parent === null ? rootPlace(id, texts, false) : nextPlace(parent, texts)
  const turn = turnId(place.chain, place.turn)
  const list = new ChangeList(tenant)
  // Each condition is a read.
  const ifNew = hasNewIds ? undefined : null
  // The first turn of a chain has the response's own id, whose record must not be there yet.
  list.put(turns, turn, turnText(id, texts), parent === null ? undefined : null)
  const seen = new Set<string>()
  for (const item of input) {
    if (seen.has(item.id)) continue
    seen.add(item.id)
    list.put(items, item.id, { turn }, ifNew)
  }
  for (const item of output) if (!seen.has(item.id)) list.put(items, item.id, { turn })
  list.put(responses, id, responseText(record, place, texts), ifNew)
  list.put(ages, ageId(createdAtSec, id), 0)
  return { list, place }
}
