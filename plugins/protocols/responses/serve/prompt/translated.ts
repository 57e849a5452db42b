/** Members, items and tools of a request that reach workers of other formats, or that the gateway handles. */
import type { BuiltInType } from '#kernel'
import { FIRST_OF, isInclude, TranslatedKinds, type Translation, untranslatedPaths } from '#shared'
import type { CreateBody } from '../../wire.ts'
import { builtInType } from '../read/read-tools.ts'
import { isClientSearch } from '../read/stand-ins.ts'
import { PART_MEMBERS } from './content-parts.ts'
import { isCompaction } from './native-request.ts'

/** Parts of other types are rejected. Sources and probabilities of earlier output are not part of a prompt. */
const part = new TranslatedKinds(PART_MEMBERS, true)

const declared = { type: true, name: true, description: true, parameters: true, strict: true } as const
const functionTool = { ...declared, function: declared } as const
const custom = { type: true, name: true, description: true, format: true } as const
const TOOL_KINDS = {
  function: functionTool,
  custom,
  namespace: {
    type: true,
    name: true,
    description: true,
    tools: new TranslatedKinds({ function: functionTool, custom }, null),
  },
} as const
/** Of items; searches and servers among them are not run. */
const found = new TranslatedKinds(TOOL_KINDS, null)
const tools = new TranslatedKinds({ ...TOOL_KINDS, mcp: true }, null)

const item = { type: true, id: true, status: true } as const
const call = { ...item, call_id: true, name: true, namespace: true, extra_content: true } as const
const output = { ...item, call_id: true, output: part } as const

/** Items of other types are rejected, or were the output of tools that a service has run. */
const input = new TranslatedKinds(
  {
    message: { ...item, role: true, content: part, extra_content: true },
    function_call: { ...call, arguments: true },
    function_call_output: output,
    custom_tool_call: { ...call, input: true },
    custom_tool_call_output: output,
    tool_search_call: { ...item, call_id: true, execution: true, arguments: true },
    tool_search_output: { ...item, call_id: true, execution: true, tools: found },
    additional_tools: { ...item, role: true, tools: found },
  },
  true,
)

/** Tools depend on what the gateway runs. */
const BODY: Translation = {
  tools: true,
  model: true,
  input,
  instructions: true,
  max_output_tokens: true,
  max_tool_calls: true,
  temperature: true,
  top_p: true,
  stream: true,
  stream_options: {},
  store: true,
  background: true,
  generate: true,
  tool_choice: true,
  parallel_tool_calls: true,
  previous_response_id: true,
  conversation: true,
  reasoning: {
    effort: true,
    summary: true,
    generate_summary: true,
    [FIRST_OF]: [['summary', 'generate_summary']],
  },
  text: {
    format: { type: true, name: true, description: true, schema: true, strict: true },
    verbosity: true,
  },
  metadata: true,
  include: true,
  context_management: true,
  user: true,
  prompt_cache_key: true,
  safety_identifier: true,
  service_tier: true,
  truncation: true,
  top_logprobs: true,
  top_k: true,
  min_p: true,
  repetition_penalty: true,
  frequency_penalty: true,
  presence_penalty: true,
  stop: true,
  prompt: true,
}

/**
 * Paths of what workers of other formats lack.
 * @param runs true for a built-in tool that the gateway runs
 */
export function untranslatedMembers(body: CreateBody, runs: (type: BuiltInType) => boolean): string[] {
  const sent = body.tools?.filter((tool) => {
    const builtIn = builtInType(tool.type)
    return builtIn === null ? !isClientSearch(tool) : !runs(builtIn)
  })
  const foreign = body.context_management?.filter((entry) => !isCompaction(entry)) ?? []
  return [
    ...untranslatedPaths(body, BODY),
    ...(sent === undefined ? [] : untranslatedPaths({ tools: sent }, { tools })),
    ...(body.include ?? []).flatMap((name) => (isInclude(name) ? [] : `include.${name}`)),
    ...foreign.map(({ type }) => `context_management.${type}`),
  ]
}
