/**
 * A conversation in which the gateway has run tools, as a service sees it that knows none of them: its calls and results
 * are those of the client.
 */
import type { WireBlock, WireMessage } from '../wire.ts'

const CALLS: ReadonlySet<string> = new Set(['tool_use', 'mcp_tool_use'])

/**
 * Calls that stand together stay in one turn, which begins as the service wrote it; their results stand at the beginning of
 * the user's next turn.
 */
export function withPlainCalls(messages: readonly WireMessage[]): WireMessage[] {
  const plain: WireMessage[] = []
  /** Of calls of the turn before, for the user's turn that follows. */
  let results: readonly WireBlock[] = []
  for (const message of messages) {
    if (message.role === 'user') {
      plain.push(
        results.length === 0 ? message : { role: 'user', content: results.concat(toBlocks(message)) },
      )
      results = []
    } else {
      if (results.length > 0) plain.push({ role: 'user', content: results })
      results = addTurn(plain, message)
    }
  }
  if (results.length > 0) plain.push({ role: 'user', content: results })
  return plain
}

/** @returns results for which no turn of the user's has come yet */
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

function toBlocks({ content }: WireMessage): readonly WireBlock[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}
