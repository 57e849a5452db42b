/** Replaces each event of a stream with the same one: the full path of a change. */
import { Description, handleStreamEvent, Request, StreamAction, StreamEvent } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsResponseHeaders([]).send()
}

export function on_stream_event(): i32 {
  return handleStreamEvent((_request: Request, event: StreamEvent): StreamAction => {
    return event.isEnd ? StreamAction.pass() : StreamAction.drop().emit(event.data, event.name)
  })
}
