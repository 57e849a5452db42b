/** The function that stands for a custom tool, whose input is a text: for models of formats that lack such tools. */
import { type ChatTool, isObject, type JsonObject } from '#kernel'
import { parseCallArguments } from './tool-calls.ts'

/** Type of a call in the Responses format. */
export const CUSTOM_CALL = 'custom_tool_call'
const INPUT = 'input'

/**
 * @param name of the function
 * @param tool as declared in the Responses format
 */
export function customFunction(name: string, tool: JsonObject): ChatTool['function'] {
  return {
    name,
    description: customDescription(tool),
    parameters: {
      type: 'object',
      properties: { [INPUT]: { type: 'string', description: 'The whole input, as plain text.' } },
      required: [INPUT],
      additionalProperties: false,
    },
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

/** Arguments of the function. */
export function customArguments(input: unknown): string {
  return JSON.stringify({ [INPUT]: String(input ?? '') })
}

/** Input of the tool. Arguments without such a member are the input themselves: models make mistakes. */
export function customInput(args: string): string {
  const { [INPUT]: input } = parseCallArguments(args)
  return typeof input === 'string' ? input : args
}
