/** The rules between fields of a chat request; single fields are the schema's business. */
import { ruleErrors } from '../../errors.ts'
import type { ChatRequest } from '../../wire/chat.ts'
import { checkStreamOptions } from '../stream-rules.ts'

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
  const maxTokens = request.max_completion_tokens ?? request.max_tokens
  if (min_tokens != null && maxTokens != null && min_tokens > maxTokens) {
    throw ruleErrors.min_tokens_exceeds_max.with({ param: 'min_tokens' })
  }
}

function checkConstraints({ regex, ebnf, response_format: format }: ChatRequest): void {
  if (regex != null && ebnf != null) throw ruleErrors.multiple_constraints()
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
    ...(tools ?? []).map((tool) => tool.function.name),
    ...(functions ?? []).map(({ name }) => name),
  ])
  const param = 'tool_choice'
  if (names.size === 0) throw ruleErrors.tool_choice_requires_tools.with({ param })
  if (typeof choice === 'string') return
  if (choice.type === 'function') {
    const { name } = choice.function
    if (!names.has(name)) throw ruleErrors.tool_choice_function_not_found.with({ param }, name)
    return
  }
  if (choice.mode !== 'auto' && choice.mode !== 'required') {
    throw ruleErrors.tool_choice_invalid_mode.with({ param: 'tool_choice.mode' })
  }
  for (const [index, tool] of choice.tools.entries()) {
    const at = { param: `tool_choice.tools.${index}` }
    const name = tool.function?.name
    if (tool.type !== 'function' || name === undefined)
      throw ruleErrors.tool_choice_invalid_tool_type.with(at)
    if (!names.has(name)) throw ruleErrors.tool_choice_tool_not_found.with(at, name)
  }
}
