/** Replaces every text of a prompt by the same text: the cost of the view, of both copies and of the parse. */
import { Action, Description, handlePromptText } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsNoClientIp().send()
}

export function on_prompt_text(): i32 {
  return handlePromptText((request, prompt) => {
    for (let i = 0; i < prompt.texts.length; i++) prompt.texts[i].text = prompt.texts[i].text + '.'
    return Action.pass()
  })
}
