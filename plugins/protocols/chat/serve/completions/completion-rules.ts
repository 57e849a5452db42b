/** The rules between fields of a text completion request; single fields are the schema's business. */
import { ruleErrors } from '../../errors.ts'
import type { CompletionRequest } from '../../wire/completion.ts'
import { checkStreamOptions } from '../stream-rules.ts'

/** @throws a rule error (400) named after the broken rule. */
export function checkCompletionRules(request: CompletionRequest): void {
  const { prompt, min_tokens, max_tokens, best_of, n, stream } = request
  if (Array.isArray(prompt) && prompt.length === 0) throw ruleErrors.prompt_empty.with({ param: 'prompt' })
  checkStreamOptions(request)
  if (min_tokens != null && max_tokens != null && min_tokens > max_tokens) {
    throw ruleErrors.min_tokens_exceeds_max.with({ param: 'min_tokens' })
  }
  const constraints = [request.regex, request.ebnf, request.json_schema].filter((value) => value != null)
  if (constraints.length > 1) throw ruleErrors.multiple_constraints()
  if (best_of == null) return
  if (stream === true) throw ruleErrors.best_of_not_supported_with_stream.with({ param: 'best_of' })
  if (best_of <= (n ?? 1)) throw ruleErrors.best_of_less_than_n.with({ param: 'best_of' })
}
