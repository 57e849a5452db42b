/** Members and blocks of a Messages body that its internal form holds. */
import { TranslatedKinds, untranslatedPaths } from '#shared'
import type { MessagesRequest } from '../wire.ts'
import { isCustom } from './check-request.ts'

const text = { type: true, text: true, extra_content: true } as const
const base64 = { type: true, media_type: true, data: true } as const
const url = { type: true, url: true } as const
/** Sources of other types are rejected. */
const image = { type: true, source: new TranslatedKinds({ base64, url }, true) } as const
const document = {
  type: true,
  source: new TranslatedKinds(
    {
      base64,
      url,
      text: base64,
      content: { type: true, content: new TranslatedKinds({ text, image }, true) },
    },
    true,
  ),
  title: true,
  context: true,
} as const
const searchResult = { type: true, title: true, source: true, content: text } as const
const toolResult = {
  type: true,
  tool_use_id: true,
  content: new TranslatedKinds(
    { text, image, document, search_result: searchResult, tool_reference: { type: true, tool_name: true } },
    true,
  ),
  is_error: true,
} as const
const toolUse = { type: true, id: true, name: true, input: true, extra_content: true } as const

const block = new TranslatedKinds(
  {
    text,
    image,
    document,
    search_result: searchResult,
    tool_use: toolUse,
    tool_result: toolResult,
    thinking: true,
    redacted_thinking: true,
    compaction: { type: true, content: true },
    mcp_tool_use: { ...toolUse, server_name: true },
    mcp_tool_result: toolResult,
  },
  null,
)

const BODY = {
  model: true,
  max_tokens: true,
  messages: { role: true, content: block },
  system: text,
  tool_choice: { type: true, name: true, disable_parallel_tool_use: true },
  thinking: { type: true, budget_tokens: true, display: true },
  stream: true,
  stop_sequences: true,
  temperature: true,
  top_p: true,
  top_k: true,
  metadata: { user_id: true },
  output_config: { effort: true, format: { type: true, name: true, schema: true } },
  output_format: true,
  mcp_servers: true,
} as const

const TOOL = {
  type: true,
  name: true,
  description: true,
  input_schema: true,
  strict: true,
  defer_loading: true,
} as const

/** Paths of what workers of other formats lack: unknown members, blocks and tools of the vendor. */
export function untranslatedMembers({ tools, ...body }: MessagesRequest): string[] {
  const ofTools = (tools ?? []).flatMap((tool) => {
    if (isCustom(tool)) return untranslatedPaths(tool, TOOL).map((path) => `tools.${path}`)
    return tool.type === 'mcp_toolset' ? [] : [`tools.${tool.type}`]
  })
  const older = body.output_config?.format != null && body.output_format != null ? ['output_format'] : []
  return [...untranslatedPaths(body, BODY), ...new Set(ofTools), ...older]
}
