/**
 * A turn with tools of the gateway as services that speak the format are asked for it: settings, blocks and tools in the
 * client's own words, so that nothing is lost which only they know.
 */
import type { GenerationRequest, NativeRequest } from '#kernel'
import type { MessagesRequest, WireMessage } from '../wire.ts'
import { withPlainCalls } from './plain-calls.ts'

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
      made ??= withPlainCalls(request.messages)
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
