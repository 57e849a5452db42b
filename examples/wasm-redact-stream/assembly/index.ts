/** Replaces secrets in every text of an answer, also one that arrives in pieces: the beginning of one is held back. */
import { config, Description, handleText } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).failsClosed().send()
}

export function on_text(): i32 {
  return handleText((request, piece) => piece.replaceAll(config.list('secrets'), '[redacted]'))
}
