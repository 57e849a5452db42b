/** The rules between fields of a request; single fields are checked by the schemas. */
import { ruleErrors } from '../errors.ts'
import type { ChatRequest } from '../wire/chat.ts'
import type { CompletionRequest, GenerateRequest } from '../wire/completion.ts'

/** @throws a rule error (400) named after the broken rule. */
export function checkChatRules(request: ChatRequest): void {
  checkStreamOptions(request)
  checkLimits(request)
  checkConstraints(request)
  checkToolChoice(request)
}

function checkLimits({ logprobs, top_logprobs, min_tokens, ...request }: ChatRequest): void {
  if (top_logprobs != null && logprobs !== true) {
    throw ruleErrors.top_logprobs_requires_logprobs.with({ param: 'top_logprobs' })
  }
  checkTokenLimits(min_tokens, request.max_completion_tokens ?? request.max_tokens, 'min_tokens')
}

function checkTokenLimits(least: number | null | undefined, most: number | null | undefined, param: string) {
  if (least != null && most != null && least > most)
    throw ruleErrors.min_tokens_exceeds_max.with({ param }, param, least, most)
}

function checkConstraints({ regex, ebnf, response_format: format }: ChatRequest): void {
  if (regex != null && ebnf != null) throw ruleErrors.multiple_constraints.with({ param: 'ebnf' })
  if (format == null || format.type === 'text') return
  if (regex != null) throw ruleErrors.regex_conflicts_with_json.with({ param: 'regex' })
  if (ebnf != null) throw ruleErrors.ebnf_conflicts_with_json.with({ param: 'ebnf' })
  if (format.type === 'json_schema' && format.json_schema.name === '') {
    throw ruleErrors.json_schema_name_empty.with({ param: 'response_format.json_schema.name' })
  }
}

function checkToolChoice({ tool_choice: choice, tools, functions }: ChatRequest): void {
  if (choice == null || choice === 'none') return
  const names = new Set([
    ...(tools ?? []).flatMap((tool) => nameOf(tool) ?? []),
    ...(functions ?? []).map(({ name }) => name),
  ])
  const param = 'tool_choice'
  if (names.size === 0) throw ruleErrors.tool_choice_requires_tools.with({ param })
  if (typeof choice === 'string') return
  if (choice.type !== 'allowed_tools') {
    const name = nameOf(choice) ?? ''
    if (!names.has(name)) throw ruleErrors.tool_choice_function_not_found.with({ param }, name)
    return
  }
  const { mode, tools: allowed = [] } = choice.allowed_tools ?? choice
  const path = choice.allowed_tools === undefined ? param : `${param}.allowed_tools`
  if (mode !== 'auto' && mode !== 'required') {
    throw ruleErrors.tool_choice_invalid_mode.with({ param: `${path}.mode` }, mode)
  }
  for (const [index, tool] of allowed.entries()) {
    const at = { param: `${path}.tools.${index}` }
    const name = nameOf(tool)
    if (name === undefined) throw ruleErrors.tool_choice_invalid_tool_type.with(at)
    if (!names.has(name)) throw ruleErrors.tool_choice_tool_not_found.with(at, name)
  }
}

/** Of a function or a custom tool. */
function nameOf(tool: {
  readonly function?: { readonly name: string }
  readonly custom?: { readonly name: string }
}): string | undefined {
  return (tool.function ?? tool.custom)?.name
}

/** @throws a rule error (400) named after the broken rule. */
export function checkCompletionRules(request: CompletionRequest): void {
  const { prompt, min_tokens, max_tokens, best_of, n, stream } = request
  if (Array.isArray(prompt) && prompt.length === 0) throw ruleErrors.prompt_empty.with({ param: 'prompt' })
  checkStreamOptions(request)
  checkTokenLimits(min_tokens, max_tokens, 'min_tokens')
  const constraints = (['regex', 'ebnf', 'json_schema'] as const).filter((name) => request[name] != null)
  if (constraints.length > 1) throw ruleErrors.multiple_constraints.with({ param: constraints[1] })
  if (best_of == null) return
  if (stream === true) throw ruleErrors.best_of_not_supported_with_stream.with({ param: 'best_of' })
  if (best_of <= (n ?? 1)) throw ruleErrors.best_of_less_than_n.with({ param: 'best_of' }, best_of, n ?? 1)
}

/** @throws a rule error (400) named after the broken rule. */
export function checkGenerateRules({ text, input_ids, sampling_params: sampling }: GenerateRequest): void {
  if ((text == null) === (input_ids == null)) throw ruleErrors.text_or_input_ids_required()
  if (sampling == null) return
  const { min_new_tokens: least, max_new_tokens: most, json_schema, regex, ebnf } = sampling
  checkTokenLimits(least, most, 'sampling_params.min_new_tokens')
  const constraints = [json_schema, regex, ebnf].filter((value) => value != null)
  if (constraints.length > 1) throw ruleErrors.multiple_constraints.with({ param: 'sampling_params' })
}

interface Streamed {
  readonly stream?: boolean | null
  readonly stream_options?: object | null
}

/** @throws stream_options_requires_stream (400). */
function checkStreamOptions({ stream, stream_options }: Streamed): void {
  if (stream_options != null && stream !== true) {
    throw ruleErrors.stream_options_requires_stream.with({ param: 'stream_options' })
  }
}
