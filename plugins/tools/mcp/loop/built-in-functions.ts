/**
 * Built-in tools as functions: what the model is offered, and how its arguments become those of the server's tool.
 */
import type { BuiltInToolRequest, BuiltInType, ChatTool } from '#kernel'
import type { BuiltInConfig } from '../config.ts'
import type { ServerTool } from '../connection/read-tools.ts'

interface BuiltInShape {
  readonly argument: string
  readonly about: string
  readonly description: string
}

const SHAPES: Readonly<Record<BuiltInType, BuiltInShape>> = {
  web_search: {
    argument: 'query',
    about: 'What to search for.',
    description: 'Searches the web and gives what was found.',
  },
  code_interpreter: {
    argument: 'code',
    about: 'The program.',
    description: 'Runs Python code and gives what it prints.',
  },
  file_search: {
    argument: 'query',
    about: 'What to search for.',
    description: 'Searches the files that belong to this conversation.',
  },
}

/** One argument, always the same, so that items can show it whatever the server calls it. */
export function builtInFunction(type: BuiltInType, name: string, tool: ServerTool): ChatTool {
  const { argument, about, description } = SHAPES[type]
  const parameters = {
    type: 'object',
    properties: { [argument]: { type: 'string', description: about } },
    required: [argument],
    additionalProperties: false,
  }
  return { type: 'function', function: { name, description: tool.description ?? description, parameters } }
}

/** What the server's tool is sent: the model's arguments renamed, then the declaration's settings, then the fixed ones. */
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
