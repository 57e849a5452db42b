/**
 * Functions in place of tools that only the Responses format has, for workers that do not speak it: a custom tool is a
 * function with one text, the functions of a namespace have its name in front of theirs, and a search of the client for further
 * tools is a function too.
 */
import { type ChatTool, isObject, type JsonObject } from '#kernel'
import { memberName, parseCallArguments } from '#shared'
import { missing, wrongValue } from '../../errors.ts'

/** What a call of the function is in the format. */
export type StandIn =
  | { readonly kind: 'custom'; readonly namespace: string | null; readonly name: string }
  | { readonly kind: 'member'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'search' }

export interface StandInFunction {
  readonly tool: ChatTool
  readonly standsFor: StandIn
}

/** Type of the declaration, and name of its function. */
export const SEARCH_TOOL = 'tool_search'
const INPUT = 'input'

/** @returns none for a tool of another type. @throws 400 naming the member */
export function standInsOf(tool: JsonObject, path: string): readonly StandInFunction[] {
  if (tool.type === 'custom') return [ofCustom(tool, path, null)]
  if (tool.type === SEARCH_TOOL) return tool.execution === 'client' ? [ofSearch(tool)] : []
  if (tool.type !== 'namespace') return []
  const namespace = nameOf(tool, path)
  const { tools } = tool
  if (!Array.isArray(tools)) return wrongValue(`${path}.tools`, 'must be an array')
  return tools.flatMap((member: unknown, index) => {
    const at = `${path}.tools[${index}]`
    if (!isObject(member)) return wrongValue(at, 'must be an object')
    if (member.type === 'custom') return [ofCustom(member, at, namespace)]
    if (member.type !== 'function') return []
    const name = nameOf(member, at)
    return {
      tool: standInTool(memberName(namespace, name), member),
      standsFor: { kind: 'member', namespace, name },
    }
  })
}

/** The function that stands for a tool with parameters. */
export function standInTool(name: string, { description, parameters, strict }: JsonObject): ChatTool {
  return {
    type: 'function',
    isStandIn: true,
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      parameters: isObject(parameters) ? parameters : { type: 'object', properties: {} },
      ...(typeof strict === 'boolean' && { strict }),
    },
  }
}

function ofSearch(tool: JsonObject): StandInFunction {
  return { tool: standInTool(SEARCH_TOOL, tool), standsFor: { kind: 'search' } }
}

/** @throws missing_required_parameter (400) */
export function nameOf({ name }: JsonObject, path: string): string {
  return typeof name === 'string' && name !== '' ? name : missing(`${path}.name`)
}

function ofCustom(tool: JsonObject, path: string, namespace: string | null): StandInFunction {
  const name = nameOf(tool, path)
  return {
    tool: {
      type: 'function',
      isStandIn: true,
      function: {
        name: namespace === null ? name : memberName(namespace, name),
        description: customDescription(tool),
        parameters: {
          type: 'object',
          properties: { [INPUT]: { type: 'string', description: 'The whole input, as plain text.' } },
          required: [INPUT],
          additionalProperties: false,
        },
      },
    },
    standsFor: { kind: 'custom', namespace, name },
  }
}

/** The grammar is part of it: it is all that a model learns about the input. */
function customDescription({ description, format }: JsonObject): string {
  const about = typeof description === 'string' ? description : ''
  if (!isObject(format) || typeof format.definition !== 'string') return about
  const syntax = typeof format.syntax === 'string' ? `${format.syntax} ` : ''
  const grammar = `The input follows this ${syntax}grammar:\n${format.definition}`
  return about === '' ? grammar : `${about}\n\n${grammar}`
}

/** Arguments of the function of a custom tool. */
export function toArguments(input: unknown): string {
  return JSON.stringify({ [INPUT]: String(input ?? '') })
}

/** Input of a custom tool. Arguments without such a member are the input themselves: models make mistakes. */
export function toInput(args: string): string {
  const { [INPUT]: input } = parseCallArguments(args)
  return typeof input === 'string' ? input : args
}
