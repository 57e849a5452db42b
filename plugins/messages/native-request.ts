/**
 * A turn with tools of the gateway as services that speak the format are asked for it: settings, blocks and tools in the
 * client's own words, so that nothing is lost which only they know. @source messages facts 8.1, 10
 */
import type { GenerationRequest, NativeRequest } from '#contracts'
import type { MessagesRequest, WireBlock, WireMessage } from './wire.ts'

/** Written anew for each worker, or the gateway's own affair. */
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
  let made: readonly WireMessage[] | null = null
  return {
    engine: 'messages',
    messageCount: prompt.kind === 'chat' ? prompt.messages.length : 0,
    prompt: () => {
      made ??= request.messages.flatMap(withPlainCalls)
      return made
    },
    members: () =>
      Object.fromEntries(
        Object.entries(request).filter(([name, value]) => !OWN_MEMBERS.has(name) && value !== null),
      ),
    tools: (request.tools ?? []).filter(({ type }) => type !== 'mcp_toolset'),
    toolChoice: toNativeChoice(request, generation),
  }
}

/** One that names a tool for which the internal form has no words. */
function toNativeChoice(
  { tool_choice: choice, tools }: MessagesRequest,
  generation: GenerationRequest,
): unknown {
  if (choice?.type !== 'tool') return null
  const isNamed = tools?.some(({ type, name }) => type !== 'mcp_toolset' && name === choice.name) === true
  const isFunction = generation.tools.some((tool) => tool.function.name === choice.name)
  return isNamed && !isFunction ? choice : null
}

/** Calls that the gateway has run in earlier turns, as calls and results of the client: the service has not seen others. */
function withPlainCalls(message: WireMessage): readonly WireMessage[] {
  const { role, content } = message
  if (typeof content === 'string' || !content.some(({ type }) => type === 'mcp_tool_use')) return [message]
  const messages: WireMessage[] = []
  let blocks: WireBlock[] = []
  for (const block of content) {
    if (block.type === 'mcp_tool_use') {
      const { server_name: _server, ...call } = block
      blocks.push({ ...call, type: 'tool_use' })
    } else if (block.type === 'mcp_tool_result') {
      if (blocks.length > 0) messages.push({ role, content: blocks })
      blocks = []
      addResult(messages, { ...block, type: 'tool_result' })
    } else blocks.push(block)
  }
  if (blocks.length > 0) messages.push({ role, content: blocks })
  return messages
}

/** Results of one turn are one turn of the user. */
function addResult(messages: WireMessage[], result: WireBlock): void {
  const last = messages.at(-1)
  if (last?.role !== 'user') messages.push({ role: 'user', content: [result] })
  else messages[messages.length - 1] = { role: 'user', content: [...last.content, result] as WireBlock[] }
}
