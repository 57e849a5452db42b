/**
 * A turn with tools of the gateway, in the client's format: for services that speak the format, so that nothing is lost
 * that only they understand. Calls that the gateway ran appear as calls of the client.
 */
import type { GenerationRequest, NativeRequest } from '#kernel'
import { toBlocks } from '../engine/to-wire-messages.ts'
import type { MessagesRequest, WireBlock, WireMessage } from '../wire.ts'

/** Members that are written for each worker, or that concern the gateway only. */
const OWN_MEMBERS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'tools',
  'tool_choice',
  'mcp_servers',
])

/** @param generation the same request in the internal form */
export function nativeRequest(request: MessagesRequest, generation: GenerationRequest): NativeRequest {
  const { prompt } = generation
  let messages: readonly WireMessage[] | null = null
  return {
    engine: 'messages',
    messageCount: prompt.kind === 'chat' ? prompt.messages.length : 0,
    prompt: () => {
      messages ??= withPlainCalls(request.messages)
      return messages
    },
    members: () =>
      Object.fromEntries(
        Object.entries(request).filter(([name, value]) => !OWN_MEMBERS.has(name) && value !== null),
      ),
    tools: (request.tools ?? []).filter(({ type }) => type !== 'mcp_toolset'),
    toolChoice: toNativeChoice(request, generation),
  }
}

/** A choice that names a tool which the internal form cannot express; null for others. */
function toNativeChoice(
  { tool_choice: choice, tools }: MessagesRequest,
  generation: GenerationRequest,
): unknown {
  if (choice?.type !== 'tool') return null
  const isNamed = tools?.some(({ type, name }) => type !== 'mcp_toolset' && name === choice.name) === true
  const isFunction = generation.tools.some((tool) => tool.function.name === choice.name)
  return isNamed && !isFunction ? choice : null
}

const CALLS: ReadonlySet<string> = new Set(['tool_use', 'mcp_tool_use'])

/**
 * Neighbouring calls stay in one turn, which begins as the service wrote it; their results stand at the beginning of the
 * user's next turn.
 */
function withPlainCalls(messages: readonly WireMessage[]): WireMessage[] {
  const plain: WireMessage[] = []
  /** Results of the turn before, for the user's turn that follows. */
  let results: WireBlock[] = []
  for (const message of messages) {
    if (message.role === 'user') {
      const content = results.length === 0 ? message.content : results.concat(toBlocks(message.content))
      plain.push({ ...message, content })
      results = []
    } else {
      if (results.length > 0) plain.push({ role: 'user', content: results })
      results = addTurn(plain, message)
    }
  }
  if (results.length > 0) plain.push({ role: 'user', content: results })
  return plain
}

/** @returns results that no user's turn follows yet */
function addTurn(plain: WireMessage[], message: WireMessage): WireBlock[] {
  const { role, content } = message
  if (typeof content === 'string' || !content.some(({ type }) => type === 'mcp_tool_use')) {
    plain.push(message)
    return []
  }
  let blocks: WireBlock[] = []
  let results: WireBlock[] = []
  for (const block of content) {
    if (block.type === 'mcp_tool_result') {
      results.push({ ...block, type: 'tool_result' })
      continue
    }
    if (results.length > 0 && !CALLS.has(block.type)) {
      if (blocks.length > 0) plain.push({ role, content: blocks })
      plain.push({ role: 'user', content: results })
      blocks = []
      results = []
    }
    blocks.push(toPlainCall(block))
  }
  if (blocks.length > 0) plain.push({ role, content: blocks })
  return results
}

function toPlainCall(block: WireBlock): WireBlock {
  if (block.type !== 'mcp_tool_use') return block
  const { server_name: _server, ...call } = block
  return { ...call, type: 'tool_use' }
}
