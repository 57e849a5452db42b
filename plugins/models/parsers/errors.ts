/** Errors of choosing a parser and of what a request demands of calls. */
import { defineErrors } from '#kernel'

export const parsersErrors = defineErrors('parsers', {
  unknown_parser: {
    kind: 'bad_request',
    source: 'client',
    text: (kind: 'tool' | 'reasoning', name: string) =>
      `there is no ${kind} parser named '${name.slice(0, 100)}'`,
  },
  tool_choice_requires_tools: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'tool_choice demands a call, but there are no tools',
  },
  tool_choice_function_not_found: {
    kind: 'bad_request',
    source: 'client',
    text: (name: string) => `tool_choice names '${name.slice(0, 100)}', which is not among the tools`,
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
    text: (problem: string) => `the chat cannot be written as Harmony messages: ${problem}`,
  },
  ignore_eos_not_supported: {
    kind: 'bad_request',
    source: 'client',
    text: () => 'ignore_eos cannot be used with Harmony models, whose answers end by tokens of their own',
  },
  multiple_constraints: {
    kind: 'bad_request',
    source: 'client',
    text: (first: string, second: string) => `${first} and ${second} cannot be combined`,
  },
})
