/** Errors of the proxy routes: missing fields, broken rules between fields, and answers that cannot be used. */
import { defineErrors } from '#kernel'

const rule = (text: string) => ({ kind: 'bad_request', source: 'client', text: () => text }) as const

export const chatErrors = defineErrors('chat', {
  missing_model: rule("field 'model' is required"),
  invalid_json_schema: rule("'json_schema' must be JSON"),
  resolve_input_failed: {
    kind: 'bad_request',
    source: 'client',
    text: (problem: string) => `the prompt cannot be used: ${problem}`,
  },
  generate_field_unsupported: {
    kind: 'bad_request',
    source: 'client',
    text: (field: string) => `workers of this model do not take '${field}'`,
  },
  no_workers: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'no HTTP worker is ready',
  },
  no_models: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'no registered worker names a model',
  },
  model_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (model: string) => `no worker names the model '${model}'`,
  },
  rerank_response_build_failed: {
    kind: 'internal',
    source: 'worker',
    text: (problem: string) => `the worker's answer is no list of scored documents: ${problem}`,
  },
  empty_input: rule("field 'input' must not be empty"),
  invalid_input: {
    kind: 'bad_request',
    source: 'client',
    text: (problem: string) => `field 'input' cannot be used: ${problem}`,
  },
  embedding_dimensions_unsupported: rule("workers of this model do not take 'dimensions'"),
  embeddings_unsupported: {
    kind: 'not_implemented',
    source: 'gateway',
    text: () => 'no enabled plugin can ask the workers of this model for embeddings',
  },
  classification_empty: {
    kind: 'internal',
    source: 'worker',
    text: () => 'the worker told no classes',
  },
  blank_query: rule("field 'query' must not be blank"),
})

/** Rules between fields, by the names that clients may match on. */
export const ruleErrors = defineErrors('chat rules', {
  top_logprobs_requires_logprobs: rule("'top_logprobs' needs 'logprobs' to be true"),
  stream_options_requires_stream: rule("'stream_options' needs 'stream' to be true"),
  min_tokens_exceeds_max: rule('the least number of tokens is above the greatest'),
  regex_conflicts_with_json: rule("'regex' cannot be combined with a JSON response format"),
  ebnf_conflicts_with_json: rule("'ebnf' cannot be combined with a JSON response format"),
  multiple_constraints: rule('at most one of regex, ebnf and json_schema may be set'),
  json_schema_name_empty: rule("the 'name' of the JSON schema is empty"),
  tool_choice_requires_tools: rule("'tool_choice' needs 'tools'"),
  tool_choice_function_not_found: {
    kind: 'bad_request',
    source: 'client',
    text: (name: string) => `'tool_choice' names the function '${name}', which is not among the tools`,
  },
  tool_choice_invalid_mode: rule("the mode of 'allowed_tools' must be auto or required"),
  tool_choice_tool_not_found: {
    kind: 'bad_request',
    source: 'client',
    text: (name: string) => `'allowed_tools' names the tool '${name}', which is not among the tools`,
  },
  tool_choice_invalid_tool_type: rule("'allowed_tools' may hold references to functions only"),
  prompt_empty: rule("'prompt' must hold at least one text"),
  best_of_less_than_n: rule("'best_of' must be greater than 'n'"),
  best_of_not_supported_with_stream: rule("'best_of' cannot be combined with 'stream'"),
  text_or_input_ids_required: rule("exactly one of 'text' and 'input_ids' must be set"),
})
