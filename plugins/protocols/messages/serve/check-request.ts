/** Validates bodies that the gateway translates: the schema, then the rules between members that a schema cannot state. */
import { defineValidator, problemText } from '#kernel'
import { invalidField } from '../errors.ts'
import { CountBody, type MessagesRequest, type WireTool } from '../wire.ts'

/** Also for messages, which differ in `max_tokens` alone: compiling a schema takes about 100 ms. */
const countBody = defineValidator(CountBody)

/**
 * @param value an object
 * @param needsMaxTokens false for requests that count tokens
 * @throws invalid_field (400) naming the field
 */
export function checkRequest(value: unknown, needsMaxTokens: boolean): MessagesRequest {
  const found = countBody.problem(value)
  if (found !== null) throw invalidField(found.field, problemText(found))
  const request = value as MessagesRequest
  if (needsMaxTokens && request.max_tokens == null) throw invalidField('max_tokens', 'is required')
  checkTools(request)
  checkThinking(request)
  return request
}

function checkTools({ tools, mcp_servers: servers, tool_choice: choice }: MessagesRequest): void {
  const serverNames = new Set(servers?.map(({ name }) => name))
  const names = new Set<string>()
  let hasToolset = false
  for (const [index, tool] of (tools ?? []).entries()) {
    const path = `tools.${index}`
    if (tool.type === 'mcp_toolset') {
      hasToolset = true
      if (serverNames.size === 0) throw invalidField(path, 'an mcp_toolset requires mcp_servers')
      if (tool.mcp_server_name === undefined || !serverNames.has(tool.mcp_server_name))
        throw invalidField(
          `${path}.mcp_server_name`,
          'must be the name of one of the mcp_servers',
          tool.mcp_server_name,
        )
    } else {
      const { name = '' } = tool
      if (names.has(name)) throw invalidField(`${path}.name`, 'tool names must be unique', name)
      names.add(name)
    }
  }
  if (choice == null || choice.type === 'none') return
  if (names.size === 0 && !hasToolset) throw invalidField('tool_choice', 'requires tools')
  if (choice.type !== 'tool') return
  const { name } = choice
  if (name === undefined) throw invalidField('tool_choice.name', 'is required')
  if (!names.has(name) && !hasToolset)
    throw invalidField('tool_choice.name', 'must be the name of one of the tools', name)
}

function checkThinking({ thinking, max_tokens: maxTokens }: MessagesRequest): void {
  if (thinking?.type !== 'enabled') return
  if (thinking.budget_tokens === undefined) throw invalidField('thinking.budget_tokens', 'is required')
  if (maxTokens != null && thinking.budget_tokens >= maxTokens)
    throw invalidField(
      'thinking.budget_tokens',
      `must be less than max_tokens, which is ${maxTokens}`,
      thinking.budget_tokens,
    )
}

/** True for tools that the client runs by a schema of its own; false for the vendor's. */
export function isCustom({ type }: WireTool): boolean {
  return type == null || type === 'custom'
}
