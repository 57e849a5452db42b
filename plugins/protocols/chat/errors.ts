/** Errors of the chat routes: missing fields, broken rules between fields, and unusable responses. */
import { defineErrors, shortValue } from '#kernel'
import { clientError } from '#shared'

const rule = (text: string) => clientError(() => text)

export const chatErrors = defineErrors('chat', {
  missing_model: rule("field 'model' is required"),
  invalid_json_schema: clientError(
    (field: string, got: string) => `field '${field}' must be JSON (got ${shortValue(got)})`,
  ),
  resolve_input_failed: clientError((problem: string) => `invalid prompt: ${problem}`),
  generate_field_unsupported: clientError(
    (field: string) => `workers of this model do not support '${field}'`,
  ),
  no_workers: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'no HTTP worker is ready',
  },
  no_models: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'no registered worker lists a model',
  },
  model_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (model: string) => `no worker lists the model '${model}'`,
  },
  rerank_response_build_failed: {
    kind: 'internal',
    source: 'worker',
    text: (problem: string) => `the worker's response is not a list of scored documents: ${problem}`,
  },
  empty_input: rule("field 'input' must not be empty"),
  invalid_input: clientError((problem: string) => `field 'input' is invalid: ${problem}`),
  embedding_dimensions_unsupported: rule("workers of this model do not support 'dimensions'"),
  embeddings_unsupported: {
    kind: 'not_implemented',
    source: 'gateway',
    text: () =>
      'no worker of this model serves this route: its engine may need an option for it, or the gateway a plugin',
  },
  classification_empty: {
    kind: 'internal',
    source: 'worker',
    text: () => 'the worker returned no classes',
  },
  blank_query: rule("field 'query' must not be blank"),
})

/** Broken rules between fields; clients may match on the codes. */
export const ruleErrors = defineErrors('chat rules', {
  top_logprobs_requires_logprobs: rule("'top_logprobs' requires 'logprobs' to be true"),
  stream_options_requires_stream: rule("'stream_options' requires 'stream' to be true"),
  min_tokens_exceeds_max: clientError(
    (field: string, least: number, most: number) =>
      `'${field}' must be at most the maximum number of tokens, ${most} (got ${least})`,
  ),
  regex_conflicts_with_json: rule("'regex' cannot be combined with a JSON response format"),
  ebnf_conflicts_with_json: rule("'ebnf' cannot be combined with a JSON response format"),
  multiple_constraints: rule('at most one of regex, ebnf and json_schema may be set'),
  json_schema_name_empty: rule("the 'name' of the JSON schema must not be empty"),
  tool_choice_requires_tools: rule("'tool_choice' requires 'tools'"),
  tool_choice_function_not_found: clientError(
    (name: string) => `'tool_choice' names the function ${shortValue(name)}, which is not in 'tools'`,
  ),
  tool_choice_invalid_mode: clientError(
    (mode: unknown) =>
      `the mode of 'allowed_tools' must be auto or required (got ${shortValue(mode) ?? 'none'})`,
  ),
  tool_choice_tool_not_found: clientError(
    (name: string) => `'allowed_tools' names the tool ${shortValue(name)}, which is not in 'tools'`,
  ),
  tool_choice_invalid_tool_type: rule(
    "'allowed_tools' must hold references to functions and custom tools only",
  ),
  prompt_empty: rule("'prompt' must hold at least one string"),
  best_of_less_than_n: clientError(
    (best: number, n: number) => `'best_of' must be greater than 'n', ${n} (got ${best})`,
  ),
  best_of_not_supported_with_stream: rule("'best_of' cannot be combined with 'stream'"),
  text_or_input_ids_required: rule("exactly one of 'text' and 'input_ids' must be set"),
})
