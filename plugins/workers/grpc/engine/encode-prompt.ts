/** Encodes the prompt of a request: text as it is, chats by the template of the model or in the format of its parser. */
import {
  type ChatMessage,
  type ChatPrompt,
  type ChatTool,
  type ContentPart,
  GatewayError,
  type GenerationRequest,
  type LoadedTokenizer,
  type OutputParser,
  type WrittenChat,
} from '#kernel'
import { sourceText, withStrictRoles } from '#shared'
import { grpcErrors } from '../errors.ts'

const AUDIO = 'input_audio'
const ERROR_PART: ContentPart = { type: 'text', text: 'Error:' }

/** What decides how a chat is written. */
export interface ChatPlan {
  /** Configured except for what depends on the rendered prompt. */
  readonly parser: OutputParser
  /** Template variables. */
  readonly kwargs: Readonly<Record<string, unknown>>
  readonly effort: string | null
}

export interface EncodedPrompt {
  readonly tokenIds: Uint32Array
  readonly text: string
}

export async function encodeText(
  prompt: Exclude<GenerationRequest['prompt'], { kind: 'chat' }>,
  tokenizer: LoadedTokenizer,
): Promise<EncodedPrompt> {
  if (prompt.kind === 'tokens') return { tokenIds: prompt.tokenIds, text: '' }
  return { tokenIds: await tokenizer.encode(prompt.text), text: prompt.text }
}

/** Several system messages are sent as they are to a template that accepts them, and as one to any other. */
export async function encodeChat(
  request: GenerationRequest,
  messages: readonly ChatMessage[],
  tokenizer: LoadedTokenizer,
  plan: ChatPlan,
): Promise<EncodedPrompt> {
  const { parser } = plan
  const pieces = parser.isChatOnly ? parser.promptOf(toWritten(request, messages, plan)) : null
  if (pieces !== null) return tokenizer.encodePieces(pieces)
  const chat = toChatPrompt(request, messages, plan.kwargs)
  try {
    return await tokenizer.renderAndEncode(chat)
  } catch (error) {
    const merged = withStrictRoles(messages)
    const isFormat = error instanceof GatewayError && error.code === 'chat_template_failed'
    if (!isFormat || merged === messages) throw error
    return tokenizer.renderAndEncode({ ...chat, messages: merged.map(toTemplateMessage) })
  }
}

/** @throws multimodal_not_supported (400) except for audio, which the format itself rejects */
function toWritten(
  request: GenerationRequest,
  messages: readonly ChatMessage[],
  { effort }: ChatPlan,
): WrittenChat {
  rejectMedia(messages, AUDIO)
  return {
    messages,
    tools: allowedTools(request),
    effort,
    continuesLastMessage: request.continuesLastMessage === true,
    ignoresEos: request.sampling.ignoreEos === true,
  }
}

/** @throws multimodal_not_supported (400) */
function toChatPrompt(
  request: GenerationRequest,
  messages: readonly ChatMessage[],
  templateKwargs: Readonly<Record<string, unknown>>,
): ChatPrompt {
  rejectMedia(messages, '')
  const tools = allowedTools(request)
  const documents = request.carried?.get('documents')
  return {
    messages: messages.map(toTemplateMessage),
    ...(tools.length > 0 && { tools: tools.map(toolText) }),
    ...(Array.isArray(documents) && { documents: documents.map(sourceText) }),
    ...(request.carried?.get('add_generation_prompt') === false && { addGenerationPrompt: false }),
    ...(request.continuesLastMessage === true && { continueFinalMessage: true }),
    templateKwargs,
  }
}

/** @param taken a type of part that is checked elsewhere */
function rejectMedia(messages: readonly ChatMessage[], taken: string): void {
  for (const { content } of messages) {
    if (typeof content === 'string' || content === null) continue
    const media = content.find(({ type }) => type !== 'text' && type !== taken)
    if (media === undefined) continue
    const type = 'value' in media ? media.type.slice('x-'.length) : media.type
    throw grpcErrors.multimodal_not_supported.with({ param: 'messages' }, type)
  }
}

/** The JSON text of a tool, with its schema as the client wrote it. */
function toolText({ type, function: declared }: ChatTool): string {
  const members = Object.entries(declared).map(
    ([name, value]) => `${JSON.stringify(name)}:${sourceText(value)}`,
  )
  return `{"type":${JSON.stringify(type)},"function":{${members.join(',')}}}`
}

/** Failed tool calls get an error text, which all templates show. */
function toTemplateMessage(message: ChatMessage): ChatMessage {
  const { content } = message
  if (message.is_error !== true) return message
  const said = typeof content === 'string' ? `Error: ${content}` : [ERROR_PART, ...(content ?? [])]
  return { ...message, content: said }
}

/** With `none` the prompt still lists the tools; only calls are not parsed. */
function allowedTools({ tools, toolChoice }: GenerationRequest): GenerationRequest['tools'] {
  if (toolChoice?.mode === 'function') return tools.filter((tool) => tool.function.name === toolChoice.name)
  if (toolChoice?.mode !== 'allowed') return tools
  const names = new Set(toolChoice.names)
  return tools.filter((tool) => names.has(tool.function.name))
}
