/**
 * The rules of the format for bodies that are translated; single blocks are checked where they are translated.
 */
import { invalidField } from '../errors.ts'
import type { MessagesRequest, WireTool } from '../wire.ts'

type Json = Record<string, unknown>

const MAX_MESSAGES = 100_000
const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system'])
const CHOICES: ReadonlySet<unknown> = new Set(['auto', 'any', 'tool', 'none'])
const THINKING: ReadonlySet<unknown> = new Set(['enabled', 'adaptive', 'between_tools', 'disabled'])
const MIN_BUDGET = 1_024

/**
 * @param needsMaxTokens false for counts
 * @throws invalid_field (400) naming the field
 */
export function checkRequest(value: unknown, needsMaxTokens: boolean): MessagesRequest {
  if (!isObject(value)) throw invalidField('body', 'must be an object')
  if (typeof value.model !== 'string' || value.model === '')
    throw invalidField('model', value.model == null ? 'field required' : 'must be a text that is not empty')
  checkMaxTokens(value.max_tokens, needsMaxTokens)
  checkMessages(value.messages)
  if (value.system != null) checkContent(value.system, 'system')
  checkSampling(value)
  const names = checkTools(value.tools, value.mcp_servers)
  checkToolChoice(value.tool_choice, names)
  checkThinking(value.thinking, value.max_tokens)
  for (const name of ['output_config', 'metadata'])
    if (value[name] != null && !isObject(value[name])) throw invalidField(name, 'must be an object')
  return value as unknown as MessagesRequest
}

function checkMaxTokens(given: unknown, isNeeded: boolean): void {
  if (given == null && !isNeeded) return
  if (given == null) throw invalidField('max_tokens', 'field required')
  if (!Number.isSafeInteger(given) || (given as number) < 1)
    throw invalidField('max_tokens', 'must be a whole number of at least 1')
}

function checkMessages(messages: unknown): void {
  if (messages == null) throw invalidField('messages', 'field required')
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalidField('messages', 'must be a list with at least one message')
  if (messages.length > MAX_MESSAGES) throw invalidField('messages', `must not be more than ${MAX_MESSAGES}`)
  for (const [index, message] of messages.entries()) {
    const path = `messages.${index}`
    if (!isObject(message)) throw invalidField(path, 'must be an object')
    if (!ROLES.has(message.role)) throw invalidField(`${path}.role`, 'must be user, assistant or system')
    checkContent(message.content, `${path}.content`)
  }
}

/** A text, or blocks that say their type. */
function checkContent(content: unknown, path: string): void {
  if (typeof content === 'string') return
  if (content == null) throw invalidField(path, 'field required')
  if (!Array.isArray(content)) throw invalidField(path, 'must be a text or a list of blocks')
  for (const [index, block] of content.entries()) {
    if (!isObject(block)) throw invalidField(`${path}.${index}`, 'must be an object')
    if (typeof block.type !== 'string') throw invalidField(`${path}.${index}.type`, 'field required')
  }
}

function checkSampling(body: Json): void {
  checkRange(body.temperature, 'temperature', 0, 2)
  checkRange(body.top_p, 'top_p', 0, 1)
  const { top_k: topK, stop_sequences: stops, stream } = body
  if (topK != null && (!Number.isSafeInteger(topK) || (topK as number) < -1))
    throw invalidField('top_k', 'must be a whole number of at least 0')
  if (stops != null && (!Array.isArray(stops) || !stops.every((one) => typeof one === 'string')))
    throw invalidField('stop_sequences', 'must be a list of texts')
  if (stream != null && typeof stream !== 'boolean') throw invalidField('stream', 'must be true or false')
}

function checkRange(value: unknown, path: string, least: number, most: number): void {
  if (value == null) return
  if (typeof value !== 'number' || value < least || value > most)
    throw invalidField(path, `must be a number from ${least} to ${most}`)
}

/** @returns names that a choice may name, and whether there is any tool at all */
function checkTools(
  tools: unknown,
  servers: unknown,
): { names: Set<string>; count: number; hasSets: boolean } {
  const names = new Set<string>()
  if (tools == null) return { names, count: 0, hasSets: false }
  if (!Array.isArray(tools)) throw invalidField('tools', 'must be a list')
  const known = new Set(Array.isArray(servers) ? servers.filter(isObject).map(({ name }) => name) : [])
  let hasSets = false
  for (const [index, tool] of tools.entries()) {
    const path = `tools.${index}`
    if (!isObject(tool)) throw invalidField(path, 'must be an object')
    if (tool.type != null && typeof tool.type !== 'string')
      throw invalidField(`${path}.type`, 'must be a text')
    if (tool.type === 'mcp_toolset') {
      hasSets = true
      checkToolset(tool, path, known)
      continue
    }
    if (typeof tool.name !== 'string' || tool.name === '')
      throw invalidField(`${path}.name`, 'field required')
    if (names.has(tool.name)) throw invalidField(`${path}.name`, 'names of tools must differ')
    names.add(tool.name)
    if (isCustom(tool) && tool.input_schema != null && !isObject(tool.input_schema))
      throw invalidField(`${path}.input_schema`, 'must be an object')
  }
  return { names, count: tools.length, hasSets }
}

/** A tool that the client runs by its own schema, not one of the vendor's. */
export function isCustom({ type }: WireTool | Json): boolean {
  return type == null || type === 'custom'
}

/** @param known names of the servers */
function checkToolset(tool: Json, path: string, known: ReadonlySet<unknown>): void {
  if (known.size === 0) throw invalidField(path, 'an mcp_toolset needs mcp_servers')
  if (!known.has(tool.mcp_server_name))
    throw invalidField(`${path}.mcp_server_name`, 'names none of the mcp_servers')
}

function checkToolChoice(choice: unknown, tools: ReturnType<typeof checkTools>): void {
  if (choice == null) return
  if (!isObject(choice) || !CHOICES.has(choice.type))
    throw invalidField('tool_choice.type', 'must be auto, any, tool or none')
  if (choice.type === 'none') return
  if (tools.count === 0) throw invalidField('tool_choice', 'needs tools')
  if (choice.type !== 'tool') return
  if (typeof choice.name !== 'string') throw invalidField('tool_choice.name', 'field required')
  if (!tools.names.has(choice.name) && !tools.hasSets)
    throw invalidField('tool_choice.name', `no tool is called '${choice.name.slice(0, 128)}'`)
}

function checkThinking(thinking: unknown, maxTokens: unknown): void {
  if (thinking == null) return
  if (!isObject(thinking) || !THINKING.has(thinking.type))
    throw invalidField('thinking.type', 'must be enabled, adaptive, between_tools or disabled')
  if (thinking.type !== 'enabled') return
  const { budget_tokens: budget } = thinking
  if (!Number.isSafeInteger(budget) || (budget as number) < MIN_BUDGET)
    throw invalidField('thinking.budget_tokens', `must be a whole number of at least ${MIN_BUDGET}`)
  if (typeof maxTokens === 'number' && (budget as number) >= maxTokens)
    throw invalidField('thinking.budget_tokens', 'must be less than max_tokens')
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
