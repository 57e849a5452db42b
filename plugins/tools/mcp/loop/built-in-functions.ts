/**
 * Built-in tools as functions: their definition for the model, and the mapping of arguments to the server's tool.
 */
import type { BuiltInToolRequest, BuiltInType, ChatTool, ListedTool } from '#kernel'
import type { BuiltInConfig } from '../config.ts'

interface BuiltInShape {
  readonly argument: string
  readonly about: string
  readonly description: string
}

const SHAPES: Readonly<Record<BuiltInType, BuiltInShape>> = {
  web_search: {
    argument: 'query',
    about: 'What to search for.',
    description: 'Searches the web and returns the results.',
  },
  code_interpreter: {
    argument: 'code',
    about: 'The program.',
    description: 'Runs Python code and returns its output.',
  },
  file_search: {
    argument: 'query',
    about: 'What to search for.',
    description: 'Searches the files that belong to this conversation.',
  },
}

/** Has one argument with a fixed name, so that items can show it for any server. */
export function builtInFunction(type: BuiltInType, name: string, tool: ListedTool): ChatTool {
  const { argument, about, description } = SHAPES[type]
  const parameters = {
    type: 'object',
    properties: { [argument]: { type: 'string', description: about } },
    required: [argument],
    additionalProperties: false,
  }
  return { type: 'function', function: { name, description: tool.description ?? description, parameters } }
}

/** Arguments for the server's tool: the model's renamed ones, then the declaration's settings, then the fixed ones. */
export function toServerArguments(
  input: Readonly<Record<string, unknown>>,
  config: BuiltInConfig,
  request: BuiltInToolRequest,
): Record<string, unknown> {
  const sent = new Map<string, unknown>()
  for (const [name, value] of Object.entries(input)) sent.set(ownText(config.arguments, name) ?? name, value)
  for (const [setting, argument] of Object.entries(config.settings)) {
    const value = Object.hasOwn(request.settings, setting) ? request.settings[setting] : undefined
    if (value !== undefined && value !== null) sent.set(argument, value)
  }
  for (const [name, value] of Object.entries(config.fixed)) sent.set(name, value)
  return Object.fromEntries(sent)
}

function ownText(record: Readonly<Record<string, string>>, name: string): string | null {
  return Object.hasOwn(record, name) ? record[name] : null
}
