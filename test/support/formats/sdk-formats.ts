/** The request formats of the SDKs: their types, and valid values where a type says too little. */
import type { CaseOptions } from './sdk-cases.ts'
import type { Json, SdkType } from './sdk-types.ts'

export type FormatName = 'chat' | 'responses' | 'messages'

export const SDK_TYPES: Readonly<Record<FormatName, SdkType>> = {
  chat: ['openai/resources/chat/completions/completions', 'ChatCompletionCreateParamsBase'],
  responses: ['openai/resources/responses/responses', 'ResponseCreateParamsBase'],
  // The beta type holds the members of the other one.
  messages: ['@anthropic-ai/sdk/resources/beta/messages/messages', 'MessageCreateParamsBase'],
}

const MODEL = 'test-model'
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII='
const FILE = 'data:application/pdf;base64,JVBERi0='
const SCHEMA = { type: 'object', properties: { a: { type: 'string' } } }

export const shared: Readonly<Record<string, Json>> = {
  arguments: '{}',
  call_id: 'call_1',
  tool_call_id: 'call_1',
  tool_use_id: 'call_1',
  name: 'f',
  parameters: SCHEMA,
  schema: SCHEMA,
  input_schema: SCHEMA,
  temperature: 0.5,
  top_p: 0.5,
  n: 2,
  logit_bias: { '5': 1 },
  metadata: { some: 'metadata' },
  server_label: 'label',
  server_url: 'https://example.com/mcp',
  url: 'https://example.com/a.png',
  file_url: 'https://example.com/a.pdf',
  image_url: `data:image/png;base64,${PNG}`,
  data: PNG,
  file_data: 'data:text/plain;base64,aGVsbG8=',
  filename: 'a.txt',
  media_type: 'image/png',
}

const { image_url: _, ...withoutImageUrl } = shared
const { media_type: __, ...withoutMediaType } = shared

const functionTool = { type: 'function', function: { name: 'f', parameters: SCHEMA } }
const chatUser = { role: 'user', content: 'Hello' }
const chatCall = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }

const chat: CaseOptions = {
  body: { model: MODEL, messages: [chatUser], tools: [functionTool] },
  values: {
    ...withoutImageUrl,
    'messages.content.image_url.url': shared.image_url,
    'messages.tool_calls.id': 'call_1',
    'tools.function.name': 'g',
    'tools.custom.name': 'g',
    'tool_choice.custom.name': 'g',
    'tool_choice.allowed_tools.tools': [{ type: 'function', function: { name: 'f' } }],
    'messages.content.file': { file_data: shared.file_data, filename: 'a.txt' },
  },
  skipped: new Set(['model']),
  around: {
    tools: (tool) => [functionTool, tool],
    messages: (message) => {
      const { role, tool_calls } = message as { role: string; tool_calls?: readonly { id: string }[] }
      if (role === 'tool') return [chatUser, { role: 'assistant', tool_calls: [chatCall] }, message]
      if (role === 'function')
        return [chatUser, { role: 'assistant', function_call: { name: 'f', arguments: '{}' } }, message]
      const result = { role: 'tool', tool_call_id: 'call_1', content: 'done' }
      if (tool_calls !== undefined) return [chatUser, message, result]
      return role === 'assistant' ? [chatUser, message, chatUser] : [message, chatUser]
    },
  },
  completed: { 'messages.content.file': { file_data: FILE } },
  replaces: { 'messages.content.file.file_id': 'file_data' },
  beside: {
    top_logprobs: { logprobs: true },
    stream_options: { stream: true },
    tool_choice: { tools: [functionTool, { type: 'custom', custom: { name: 'g' } }] },
  },
}

const responsesUser = { type: 'message', role: 'user', content: 'Hello' }
const functionCall = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }
/** The call of each type of result. */
const CALL_OF: Readonly<Record<string, Json>> = {
  function_call_output: functionCall,
  custom_tool_call_output: { type: 'custom_tool_call', call_id: 'call_1', name: 'f', input: 'x' },
  tool_search_output: { type: 'tool_search_call', call_id: 'call_1', execution: 'client', arguments: {} },
}
const RESULT_OF: Readonly<Record<string, Json>> = {
  function_call: { type: 'function_call_output', call_id: 'call_1', output: 'done' },
  custom_tool_call: { type: 'custom_tool_call_output', call_id: 'call_1', output: 'done' },
}

const responsesTool = { ...functionTool.function, type: 'function' }

const responses: CaseOptions = {
  body: { model: MODEL, input: [responsesUser], tools: [responsesTool] },
  values: {
    ...shared,
    'tools.name': 'g',
    'tool_choice.name': 'g',
    'input.tools': [{ type: 'function', name: 'g', parameters: SCHEMA, strict: null }],
    'input.tools.name': 'g',
    'tool_choice.tools': [{ type: 'function', name: 'f' }],
  },
  // The last two name what the gateway has stored.
  skipped: new Set(['model', 'input.call_id', 'previous_response_id', 'conversation']),
  around: {
    tools: (tool) => [responsesTool, tool],
    input: (given) => {
      const { type } = given as { type?: string }
      const item = (type?.endsWith('_output') ? { call_id: 'call_1', ...(given as object) } : given) as Json
      const call = CALL_OF[type ?? '']
      const result = RESULT_OF[type ?? '']
      return [
        ...(call === undefined ? [] : [call]),
        item,
        ...(result === undefined ? [] : [result]),
        responsesUser,
      ]
    },
  },
  completed: { input_file: { file_data: FILE }, input_image: { image_url: 'https://example.com/b.png' } },
  replaces: Object.fromEntries(
    ['input.content', 'input.output'].flatMap((at) => [
      [`${at}.file_url`, 'file_data'],
      [`${at}.file_id`, 'file_data'],
    ]),
  ),
  beside: {
    stream_options: { stream: true },
    tool_choice: {
      tools: [
        responsesTool,
        { type: 'custom', name: 'g' },
        ...[
          'apply_patch',
          'code_interpreter',
          'computer',
          'computer_use',
          'computer_use_preview',
          'file_search',
          'image_generation',
          'mcp',
          'programmatic_tool_calling',
          'shell',
          'web_search_preview',
        ].flatMap((type) => (type === 'mcp' ? [] : [{ type }])),
      ],
    },
  },
}

const messagesUser = { role: 'user', content: 'Hello' }
const toolUse = { type: 'tool_use', id: 'call_1', name: 'f', input: {} }

const messagesTool = { name: 'f', input_schema: SCHEMA }
/** Blocks of a user's turn; others are those of the model. */
const USER_BLOCKS: ReadonlySet<unknown> = new Set([
  'container_upload',
  'document',
  'image',
  'search_result',
  'text',
  'tool_result',
])
const SYSTEM_BLOCKS: ReadonlySet<unknown> = new Set(['tool_addition', 'tool_removal'])

const messages: CaseOptions = {
  body: {
    model: MODEL,
    max_tokens: 4096,
    messages: [messagesUser],
    tools: [messagesTool],
  },
  values: {
    ...withoutMediaType,
    metadata: { user_id: 'u' },
    'tools.name': 'g',
    'messages.system.content': 'Be kind.',
    'messages[system].content': 'Be kind.',
    budget_tokens: 1024,
    stop_sequences: ['END'],
    'messages.content.id': 'call_1',
  },
  // Sent as headers.
  skipped: new Set(['model', 'betas', 'user_profile_id', 'workspace_id']),
  around: {
    tools: (tool) => [messagesTool, tool],
    messages: (given) => {
      const { role, content } = given as { role: string; content?: Json }
      const blocks = Array.isArray(content) ? (content as readonly { type?: string }[]) : []
      const has = (kinds: ReadonlySet<unknown>) => blocks.some(({ type }) => kinds.has(type))
      const needed = has(USER_BLOCKS) ? 'user' : has(SYSTEM_BLOCKS) ? 'system' : 'assistant'
      const message = { ...(given as object), role: blocks.length === 0 ? role : needed } as Json
      if (blocks.some(({ type }) => type === 'tool_result'))
        return [messagesUser, { role: 'assistant', content: [toolUse] }, message]
      if (blocks.some(({ type }) => type === 'tool_use'))
        return [
          messagesUser,
          message,
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'done' }] },
        ]
      return [messagesUser, message, messagesUser]
    },
  },
  beside: {},
}

export const SDK_FORMATS: Readonly<Record<FormatName, CaseOptions>> = { chat, responses, messages }
