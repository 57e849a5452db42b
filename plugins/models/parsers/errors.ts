/** Errors of the selection of a parser, and of requirements of a request for calls. */
import { defineErrors } from '#kernel'

export const parsersErrors = defineErrors('parsers', {
  unknown_parser: {
    kind: 'bad_request',
    source: 'client',
    text: (kind: 'tool' | 'reasoning', name: string) => `no ${kind} parser is named '${name.slice(0, 100)}'`,
  },
  tool_choice_requires_tools: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'tool_choice requires a tool call, but the request has no tools',
  },
  tool_choice_function_not_found: {
    kind: 'bad_request',
    source: 'client',
    text: (name: string) =>
      `tool_choice names '${name.slice(0, 100)}', which the request does not define in tools`,
  },
  invalid_tool_configuration: {
    kind: 'bad_request',
    source: 'client',
    text: (definition: string) =>
      `the tools have conflicting definitions of '${definition.slice(0, 100)}' in $defs`,
  },
  harmony_build_failed: {
    kind: 'bad_request',
    source: 'client',
    text: (problem: string) => `the messages cannot be converted to the Harmony format: ${problem}`,
  },
  ignore_eos_not_supported: {
    kind: 'bad_request',
    source: 'client',
    text: () =>
      'ignore_eos is not supported for Harmony models, which stop at the tokens <|return|> and <|call|>',
  },
  multiple_constraints: {
    kind: 'bad_request',
    source: 'client',
    text: (first: string, second: string) => `${first} and ${second} cannot be combined`,
  },
})
