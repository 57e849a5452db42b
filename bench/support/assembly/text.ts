/** Replaces each piece of text with the same one: the full path of a change. */
import { Description, handleText, Request, TextAction, TextPiece } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).send()
}

export function on_text(): i32 {
  return handleText((_request: Request, piece: TextPiece): TextAction => TextAction.pass(piece.text))
}
