/** The JSON of a response's records, made once of what its writer has as text already. */
import { type FinishedResponse, JsonText } from '#kernel'
import type { Place } from './collections.ts'

/** Input and output as text: they stand in the turn, or, where the response has none, in its own record. */
export interface ItemTexts {
  readonly input: string
  readonly output: string
}

export function itemTextsOf({ input, output, outputText }: FinishedResponse): ItemTexts {
  return { input: JSON.stringify(input), output: outputText ?? JSON.stringify(output) }
}

/** A `Turn`. */
export function turnText(id: string, { input, output }: ItemTexts): JsonText {
  return new JsonText(`{"id":${JSON.stringify(id)},"input":${input},"output":${output}}`)
}

/** A `StoredResponse`. */
export function responseText(record: FinishedResponse, place: Place | null, items: ItemTexts): JsonText {
  const { createdAtSec, status, reply, previousResponseId, conversationId, facts } = record
  const told = reply instanceof JsonText ? reply.text : JSON.stringify(reply)
  const past = `"previousResponseId":${idText(previousResponseId)},"conversationId":${idText(conversationId)}`
  const head = `{"createdAtSec":${createdAtSec},"status":"${status}","reply":${told},${past}`
  const tail = `,"facts":${JSON.stringify(facts)},"place":${place === null ? 'null' : JSON.stringify(place)}`
  return new JsonText(
    place === null ? `${head}${tail},"input":${items.input},"output":${items.output}}` : `${head}${tail}}`,
  )
}

function idText(id: string | null): string {
  return id === null ? 'null' : JSON.stringify(id)
}
