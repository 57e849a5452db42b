/** Texts of answers, in every format: the words of the setting `words` are replaced. */
import { config, handleText } from 'weir-gateway/wasm-sdk/assembly'

export function on_text(): i32 {
  return handleText((request, piece) => piece.replaceAll(config.list('words'), '***'))
}
