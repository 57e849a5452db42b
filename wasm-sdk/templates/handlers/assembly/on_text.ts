/** Texts of answers, in every format: replaces the words of the setting `words`, also those that are split between pieces. */
import { config, handleText } from 'weir-gateway/wasm-sdk/assembly'

export function on_text(): i32 {
  return handleText((request, piece) => piece.replaceAll(config.list('words'), '***'))
}
