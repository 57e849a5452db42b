/** Why members are in no request of a worker, and why some are rejected. A member without a reason fails the test. */
import type { FormatName } from './sdk-formats.ts'

interface Reason {
  readonly text: string
  readonly clients: readonly FormatName[]
  readonly paths: RegExp
}

const reason = (text: string, clients: readonly FormatName[], ...paths: readonly string[]): Reason => ({
  text,
  clients,
  paths: new RegExp(`^(?:${paths.join('|')})(?:$|[.:[])`),
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
    'stream_options(?:\\.include_obfuscation)?',
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
  reason('without a toolset that uses it', ['messages'], 'mcp_servers\\[url\\](?:.authorization_token)?$'),
]

export const REJECTED: readonly Reason[] = [
  reason('changes the number of answers', ['chat'], 'n$'),
  reason('changes the form of the answer', ['chat'], 'response_format\\[json_object\\]'),
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

export function reasonOf(reasons: readonly Reason[], client: FormatName, path: string): string | undefined {
  return reasons.find(({ clients, paths }) => clients.includes(client) && paths.test(path))?.text
}
