/** Ids of tool calls, which some model families expect to find again in their prompt. */
import { uuidV7 } from '#shared'

/** @returns the id of the call at an index of one message */
export type CallIds = (index: number, name: string) => string

/** @param earlierCalls tool calls in earlier messages of the request */
export function callIdsOf(model: string, earlierCalls: number): CallIds {
  const id = model.toLowerCase()
  if (!id.includes('kimi')) return randomCallId
  if (id.includes('k3')) return (index, name) => `${name}:${index}`
  return (index, name) => `functions.${name}:${earlierCalls + index}`
}

function randomCallId(): string {
  return `call_${uuidV7().replaceAll('-', '').slice(0, 24)}`
}
