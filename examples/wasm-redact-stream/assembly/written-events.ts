/** Events that this module writes itself, for text that waited. */
import { JsonWriter } from 'weir-gateway/wasm-sdk/assembly'
import { Tail, Tails } from './tails'

/** A chunk of a chat completion with one piece of text. */
export function chatChunk(stream: Tails, tail: Tail, text: string): string {
  const json = new JsonWriter().beginObject()
  json.key('id').text(stream.id).key('object').text('chat.completion.chunk')
  json.key('created').integer(stream.created).key('model').text(stream.model)
  json.key('choices').beginArray().beginObject()
  json.key('index').integer(I64.parseInt(tail.index))
  json.key('delta').beginObject().key(tail.field).text(text).endObject()
  return json.key('finish_reason').nil().endObject().endArray().endObject().toString()
}

/** A piece of text of a content block of the messages API. */
export function messageDelta(tail: Tail, text: string): string {
  const json = new JsonWriter().beginObject()
  json.key('type').text('content_block_delta').key('index').integer(I64.parseInt(tail.index))
  json.key('delta').beginObject().key('type').text('text_delta').key('text').text(text)
  return json.endObject().endObject().toString()
}
