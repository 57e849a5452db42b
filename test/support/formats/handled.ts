/** Why members are in no request of a worker or in no answer for a client, and why some are rejected. A member without a reason fails the test. */
import type { WorkerName } from './lanes.ts'
import type { FormatName } from './sdk-formats.ts'

interface Reason {
  readonly text: string
  /** Of the sender: the client of a request, the worker of an answer. */
  readonly formats: readonly FormatName[]
  readonly paths: RegExp
  /** Absent: of every format. */
  readonly worker?: WorkerName
}

const reason = (text: string, formats: readonly FormatName[], ...paths: readonly string[]): Reason => ({
  text,
  formats,
  paths: new RegExp(`^(?:${paths.join('|')})(?:$|[.:[])`),
})

const ofGrpc = (text: string, formats: readonly FormatName[], ...paths: readonly string[]): Reason => ({
  ...reason(text, formats, ...paths),
  worker: 'grpc',
})

const SERVICE_CALLS =
  'input\\[(?:web_search_call|file_search_call|code_interpreter_call|image_generation_call|mcp_list_tools|mcp_approval_request|tool_search_call)\\]'

export const HANDLED: readonly Reason[] = [
  reason('the gateway keeps or does it', ['chat'], 'stream_options(?:\\.include_usage)?'),
  reason(
    'the gateway keeps or does it',
    ['responses'],
    'context_management',
    'include',
    'input\\[compaction_trigger\\]',
    'input\\[tool_search_output\\].execution',
    'max_tool_calls',
    'metadata',
    'reasoning.(?:generate_)?summary',
    'store',
    'stream_options',
    'truncation',
  ),
  reason('the gateway keeps or does it', ['messages'], 'thinking\\[[a-z]+\\].display'),
  reason('ids and states are written by the gateway', ['responses'], 'input\\[[^\\]]+\\].(?:id|status)'),
  reason('output of earlier turns that is not part of a prompt', ['responses'], SERVICE_CALLS),
  reason(
    'output of earlier turns that is not part of a prompt',
    ['responses'],
    'input\\[message 3\\].content\\[output_text\\].(?:annotations|logprobs)',
    'input\\[reasoning\\]',
  ),
  reason('the default', ['chat'], 'response_format\\[text\\]', 'tools\\[custom\\].custom.format\\[text\\]'),
  reason(
    'the default',
    ['chat'],
    'messages\\[user\\].content\\[image_url\\].image_url.detail',
    'response_format\\[json_schema\\].json_schema.strict',
  ),
  reason(
    'the default',
    ['responses'],
    'input\\[message(?: 2)?\\].type',
    'reasoning$',
    'text$',
    'text.format\\[text\\]',
    'text.format\\[json_schema\\].strict',
    'tools\\[custom\\].format\\[text\\]',
  ),
  reason('the default', ['messages'], 'metadata\\[object\\]$', 'output_config$', 'tools\\[custom\\].type'),
  reason(
    'engines know other levels',
    ['responses'],
    'input\\[message\\].content\\[input_image\\].detail: "original"',
  ),
  reason(
    'models that cannot see get a note',
    ['responses'],
    'input\\[function_call_output\\].output\\[input_image\\].(?:detail|image_url)',
  ),
  ofGrpc('selects the worker', ['chat', 'responses'], 'prompt_cache_key', 'user'),
  ofGrpc('selects the worker', ['messages'], 'metadata'),
  ofGrpc('the gateway keeps or does it', ['chat', 'responses'], 'parallel_tool_calls', 'stop'),
  ofGrpc(
    'the gateway keeps or does it',
    ['messages'],
    'stop_sequences',
    'tool_choice\\[[a-z]+\\].disable_parallel_tool_use',
  ),
  ofGrpc('the default', ['chat'], 'function_call: "auto"', 'tool_choice: "auto"'),
  ofGrpc('the default', ['responses'], 'tool_choice: "auto"'),
  ofGrpc('the default', ['messages'], 'tool_choice\\[auto\\]$'),
  reason('without a toolset that uses it', ['messages'], 'mcp_servers\\[url\\](?:.authorization_token)?$'),
]

export const REJECTED: readonly Reason[] = [
  reason(
    'system messages of the other format are text',
    ['responses'],
    'input\\[message 2\\].role: "(?:developer|system)"',
  ),
  reason('known to its service alone', ['chat', 'responses'], '.*\\.file_id'),
  reason('loaded only if `generations.fileUrls` allows it', ['responses'], '.*\\[input_file\\].file_url'),
  reason('changes the number of answers', ['chat'], 'n$'),
  reason('changes the form of the answer', ['chat'], 'response_format\\[json_object\\]'),
  ofGrpc('changes the form of the answer', ['chat'], 'modalities: "audio"'),
  reason('changes the form of the answer', ['responses'], 'text.format\\[json_object\\]'),
  reason('names what only the service has stored', ['responses'], 'prompt$'),
  reason('needs a store', ['responses'], 'background'),
  reason('names no server', ['responses'], 'tool_choice\\[code_interpreter\\].type: "mcp"'),
  reason(
    'no tools of servers run without the plugin `mcp`',
    ['messages'],
    'mcp_servers\\[url\\].tool_configuration',
  ),
]

const EVENT = '(?:events\\[response\\.(?:completed|output_item\\.added)\\]\\.)?'
const WRITTEN = 'ids, times, states and counts are written by the gateway'
const AS_ITEM = 'the item has it when it is complete'

/** Of answers. */
export const ANSWERED: readonly Reason[] = [
  reason(
    WRITTEN,
    ['chat'],
    '(?:events\\.)?(?:created|id|model)',
    '(?:events\\.)?usage.total_tokens',
    'events$',
  ),
  reason(
    'as in the first chunk',
    ['chat'],
    'events.(?:choices.index|service_tier|system_fingerprint)',
    'events.choices.delta\\[assistant\\].role',
  ),
  reason(
    'only clients with such a member get it',
    ['chat'],
    'service_tier',
    'system_fingerprint',
    '(?:events\\.)?choices.logprobs',
  ),
  reason('recorded as usage', ['chat'], '(?:events\\.)?usage.(?:completion|prompt)_tokens_details'),
  reason(
    'the same reason in the client’s format, which tool calls and text decide',
    ['chat'],
    '(?:events\\.)?choices.finish_reason',
  ),
  reason(
    'part of a call without its name',
    ['chat'],
    '(?:events\\.)?choices.(?:message|delta)\\[assistant\\].(?:tool_calls\\[(?:custom|some_new_kind)\\]|function_call\\[object\\])',
  ),
  reason(
    WRITTEN,
    ['responses'],
    `${EVENT}(?:output|item)\\[[a-z_]+\\].(?:id|status)`,
    `${EVENT}(?:response\\.)?(?:completed_at|created_at|id|output_text|status|usage.total_tokens)`,
    `${EVENT}(?:response\\.)?usage.input_tokens`,
  ),
  reason(
    'repeats the request',
    ['responses'],
    `${EVENT}(?:response\\.)?(?:background|conversation|max_output_tokens|max_tool_calls|metadata|parallel_tool_calls|previous_response_id|prompt_cache_key|prompt_cache_options|prompt_cache_retention|reasoning|safety_identifier|temperature|text|top_logprobs|top_p|truncation|user)`,
  ),
  reason(
    'only clients with such a member get it',
    ['responses'],
    `${EVENT}(?:response\\.)?(?:model|service_tier)`,
    `${EVENT}(?:output|item)\\[[a-z_]+\\].(?:namespace|encrypted_content|output_format)`,
    '.*logprobs',
  ),
  reason(
    'of a response that has failed or is incomplete',
    ['responses'],
    `${EVENT}(?:response\\.)?(?:error|incomplete_details)`,
  ),
  reason('errors have the codes of the gateway', ['responses'], 'events\\[(?:error|response\\.failed)\\]'),
  reason(
    'one text of reasoning, where the format has one',
    ['responses'],
    `${EVENT}(?:output|item)\\[reasoning\\].content`,
  ),
  reason(
    'repeats other events, from which it is written again',
    ['responses'],
    'events\\[response\\.(?:completed|created|in_progress|queued)\\]$',
    'events\\[response\\.(?:output_text|refusal|function_call_arguments|reasoning_text|reasoning_summary_text)\\.done\\]',
    'events\\[response\\.(?:content_part|reasoning_summary_part)\\.(?:added|done)\\]',
    'events\\[response\\.output_item\\.(?:added|done)\\]$',
  ),
  reason(AS_ITEM, ['responses'], 'events\\[response\\.[a-z_]*(?:call|tools)[a-z_]*\\.[a-z_]+\\]'),
  reason(AS_ITEM, ['responses'], 'events\\[response\\.output_text\\.annotation\\.added\\]'),
  reason('opaque; only the vendor reads it', ['messages'], '.*signature', '.*\\[signature_delta\\]'),
  reason(
    'the same reason in the client’s format, which tool calls and text decide',
    ['messages'],
    '(?:events\\[message_delta\\].delta.)?stop_(?:reason|sequence)',
  ),
  reason(
    'recorded as usage',
    ['messages'],
    '(?:events\\[message_(?:start|delta)\\].(?:message\\[message\\].)?)?usage',
  ),
  reason(WRITTEN, ['messages'], 'id', 'events\\[message_start\\].message\\[message\\].id'),
  reason(
    'the block has it',
    ['messages'],
    'events\\[content_block_(?:start|delta|stop)\\](?:$|.index)',
    'events\\[message_stop\\]$',
  ),
]

export function reasonOf(
  reasons: readonly Reason[],
  sender: FormatName,
  path: string,
  worker?: WorkerName,
): string | undefined {
  const isOf = (one: Reason) => one.worker === undefined || one.worker === worker
  return reasons.find((one) => one.formats.includes(sender) && isOf(one) && one.paths.test(path))?.text
}
