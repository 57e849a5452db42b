/** Puts the canonical model in the place of an alias: the one change a body ever sees. */
import type { RoutingPeek } from '../contracts/request.ts'

/** The same body with another model; everything else stays byte for byte. */
export function withModel(body: Buffer, peek: RoutingPeek, model: string): Buffer {
  if (peek.modelStart < 0) return body
  const value = Buffer.from(JSON.stringify(model))
  return Buffer.concat([body.subarray(0, peek.modelStart), value, body.subarray(peek.modelEnd)])
}
