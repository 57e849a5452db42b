/** Events of streamed responses: drops those with the name of the setting `drop`. */
import { config, handleStreamEvent, StreamAction } from 'weir-gateway/wasm-sdk/assembly'

export function on_stream_event(): i32 {
  return handleStreamEvent((request, event) => {
    const name = event.name
    if (name === null || name != config.text('drop', 'ping')) return StreamAction.pass()
    return StreamAction.drop()
  })
}
