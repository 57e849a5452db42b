/** The `include` parameter of responses and conversations: members that replies hold only on demand. @source OpenAI API reference, Responses */

const INCLUDES = [
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
] as const

export type Include = (typeof INCLUDES)[number]

export function isInclude(name: unknown): name is Include {
  return INCLUDES.includes(name as Include)
}

/** Names in a query: repeated, with brackets, or joined by commas, since clients use all three forms. */
export function includeNames(query: URLSearchParams): string[] {
  const given = [...query.getAll('include'), ...query.getAll('include[]')]
  return given.flatMap((text) => text.split(',')).filter((name) => name !== '')
}
