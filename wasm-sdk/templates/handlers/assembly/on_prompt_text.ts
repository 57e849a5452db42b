/** Texts of prompts, in every format: replaces the words of the setting `words`. */
import { Action, config, handlePromptText, WordReplacer } from 'weir-gateway/wasm-sdk/assembly'

export function on_prompt_text(): i32 {
  return handlePromptText((request, prompt) => {
    const words = new WordReplacer(config.list('words'), '***')
    for (let i = 0; i < prompt.texts.length; i++) {
      const text = prompt.texts[i]
      text.text = words.replace(text.text, true)
    }
    return Action.pass()
  })
}
