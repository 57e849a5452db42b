/** Tool calls: rejects those of the tool that the setting `forbidden` names. */
import { config, handleToolCall, ToolAction } from 'weir-gateway/wasm-sdk/assembly'

export function on_tool_call(): i32 {
  return handleToolCall((request, call) => {
    if (call.name != config.text('forbidden', 'delete')) return ToolAction.pass()
    return ToolAction.reject(`the tool ${call.name} may not be used here`)
  })
}
