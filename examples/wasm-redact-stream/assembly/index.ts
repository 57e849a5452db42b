/** Takes secrets out of streamed answers, also when one arrives in pieces: what might be a beginning waits. */
import { config, Description, handleStreamEvent, Json, JsonEdits, StreamAction, StreamEvent } from 'weir-gateway/wasm-sdk/assembly'
import { Redactor } from './redactor'
import { Tails } from './tails'
import { chatChunk, messageDelta } from './written-events'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsResponseHeaders([]).failsClosed().send()
}

export function on_stream_event(): i32 {
  return handleStreamEvent((request, event) => {
    const tails = new Tails(event.state)
    if (event.isEnd) return flushAll(tails)
    const data = event.json()
    if (data === null) return StreamAction.pass()
    if (data.get('choices').isArray) return chat(event, data, tails)
    const type = data.get('type')
    if (type.is('content_block_delta')) return messageText(data, tails)
    if (type.is('content_block_stop')) return messageStop(event, data, tails)
    return StreamAction.pass()
  })
}

/** A chunk of a chat completion: text is replaced in place, and a choice that finishes gets what waited. */
function chat(event: StreamEvent, data: Json, tails: Tails): StreamAction {
  const redactor = new Redactor(config.list('secrets'))
  const edits = new JsonEdits(data)
  const action = StreamAction.drop()
  tails.remember(data)
  const choices = data.get('choices').elements()
  while (choices.next()) {
    const choice = choices.value
    const index = choice.get('index').integer().toString()
    const isLast = choice.get('finish_reason').isString
    const delta = choice.get('delta').members()
    while (delta.next()) {
      if (!isText(delta.key) || !delta.value.isString) continue
      const name = `${index}:${delta.key}`
      const text = tails.take(name) + delta.value.text()
      edits.setText(delta.value, isLast ? redactor.last(text) : redactor.next(text))
      tails.put(name, redactor.tail)
    }
    if (!isLast) continue
    const waiting = tails.takeOf(index)
    // In front of the chunk that finishes: clients stop reading there.
    for (let i = 0; i < waiting.length; i++) {
      action.emit(chatChunk(tails, waiting[i], redactor.last(waiting[i].text)))
    }
  }
  return emitEdited(action, event, edits).keep(tails.toString())
}

/** Text of a content block of the messages API. */
function messageText(data: Json, tails: Tails): StreamAction {
  const text = data.get('delta').get('text')
  if (!text.isString) return StreamAction.pass()
  const redactor = new Redactor(config.list('secrets'))
  const edits = new JsonEdits(data)
  const name = `${data.get('index').integer()}:text`
  edits.setText(text, redactor.next(tails.take(name) + text.text()))
  tails.put(name, redactor.tail)
  return StreamAction.drop().emit(edits.toText(), 'content_block_delta').keep(tails.toString())
}

function messageStop(event: StreamEvent, data: Json, tails: Tails): StreamAction {
  const waiting = tails.takeOf(data.get('index').integer().toString())
  if (waiting.length == 0) return StreamAction.pass()
  const redactor = new Redactor(config.list('secrets'))
  const action = StreamAction.drop()
  for (let i = 0; i < waiting.length; i++) {
    action.emit(messageDelta(waiting[i], redactor.last(waiting[i].text)), 'content_block_delta')
  }
  return action.emit(event.data, event.name).keep(tails.toString())
}

/** The stream ended before its text did: what waits goes out. */
function flushAll(tails: Tails): StreamAction {
  const waiting = tails.takeAll()
  const redactor = new Redactor(config.list('secrets'))
  const action = StreamAction.pass()
  for (let i = 0; i < waiting.length; i++) {
    const text = redactor.last(waiting[i].text)
    if (waiting[i].field == 'text') action.emit(messageDelta(waiting[i], text), 'content_block_delta')
    else action.emit(chatChunk(tails, waiting[i], text))
  }
  return action.keep('')
}

function emitEdited(action: StreamAction, event: StreamEvent, edits: JsonEdits): StreamAction {
  return action.emit(edits.count == 0 ? event.data : edits.toText(), event.name)
}

function isText(key: string): bool {
  return key == 'content' || key == 'reasoning_content' || key == 'refusal'
}
