/** Tells the client what its request lost, where it is answered all the same. */
import type { ReplyHeaders } from '#kernel'
import type { Plan } from './plan.ts'

const WARNING_HEADER = 'x-weir-warning'

/** `encrypted_reasoning_dropped; items=<n>` where reasoning in the input could not be opened. */
export function warningHeaders({ droppedReasoning }: Plan): ReplyHeaders {
  return droppedReasoning === 0
    ? []
    : [WARNING_HEADER, `encrypted_reasoning_dropped; items=${droppedReasoning}`]
}
