/** Generation requests as bodies of Gemini's generateContent. @source https://ai.google.dev/api/generate-content */
import {
  type ChatMessage,
  type ChatToolCall,
  type ContentPart,
  defineErrors,
  type GenerationRequest,
  isObject,
  type OutputConstraint,
  type ReasoningOptions,
  type Sampling,
} from 'weir-gateway'

export type Json = Record<string, unknown>

const requestErrors = defineErrors('gemini-request', {
  gemini_unsupported: {
    kind: 'bad_request',
    source: 'client',
    text: (what: string) => `Gemini does not support ${what}`,
  },
})

/** @throws gemini_unsupported (400) naming the member */
export function toGeminiBody(request: GenerationRequest): Json {
  const { prompt, constraint, sampling, reasoning, choices } = request
  if (prompt.kind === 'tokens') throw unsupported('prompt', 'a prompt of token ids')
  const messages: readonly ChatMessage[] =
    prompt.kind === 'text' ? [{ role: 'user', content: prompt.text }] : prompt.messages
  const isSystem = ({ role }: ChatMessage) => role === 'system' || role === 'developer'
  const system = messages.filter(isSystem).flatMap(({ content }) => toParts(content))
  return {
    contents: toContents(messages.filter((message) => !isSystem(message))),
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    ...toTools(request),
    generationConfig: {
      ...toSampling(sampling),
      ...toFormat(constraint),
      ...(choices > 1 && { candidateCount: choices }),
      ...(reasoning !== null && { thinkingConfig: toThinking(reasoning) }),
    },
  }
}

function unsupported(param: string, what: string) {
  return requestErrors.gemini_unsupported.with({ param }, what)
}

/** Neighbours of one role are one turn, since the results of parallel calls must be in one. */
function toContents(messages: readonly ChatMessage[]): Json[] {
  const contents: { role: 'user' | 'model'; parts: Json[] }[] = []
  /** Functions by the ids of their calls: results name the function. */
  const names = new Map<string, string>()
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'model' : 'user'
    for (const { id, function: called } of message.tool_calls ?? []) names.set(id, called.name)
    const parts =
      message.role === 'tool'
        ? [toResult(message, names.get(message.tool_call_id ?? '') ?? '')]
        : [...toSignedParts(message), ...(message.tool_calls ?? []).map(toCall)]
    const last = contents.at(-1)
    if (last?.role === role) last.parts.push(...parts)
    else contents.push({ role, parts })
  }
  return contents
}

function toResult({ content, is_error: isError }: ChatMessage, name: string): Json {
  const text = toParts(content)
    .map((part) => part.text ?? '')
    .join('')
  const value = readJson(text)
  const response = isError === true ? { error: text } : isObject(value) ? value : { result: value ?? text }
  return { functionResponse: { name, response } }
}

/** The signature that the model gave, without which newer models reject a call. */
function signatureOf({ extra_content: extra }: ChatMessage | ChatToolCall): Json {
  const own = extra?.google
  const signature = isObject(own) ? own.thought_signature : undefined
  return typeof signature === 'string' ? { thoughtSignature: signature } : {}
}

function toCall(call: ChatToolCall): Json {
  const { name, arguments: text } = call.function
  return { functionCall: { name, args: readJson(text) ?? {} }, ...signatureOf(call) }
}

function toSignedParts(message: ChatMessage): Json[] {
  const parts = toParts(message.content)
  const last = parts.pop()
  return last === undefined ? parts : [...parts, { ...last, ...signatureOf(message) }]
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function toParts(content: ChatMessage['content']): Json[] {
  if (content === null || content === '') return []
  return typeof content === 'string' ? [{ text: content }] : content.map(toPart)
}

function toPart(part: ContentPart): Json {
  if ('value' in part) throw unsupported('messages', `a part of type '${part.type.slice(2)}'`)
  switch (part.type) {
    case 'text':
      return { text: part.text }
    case 'image_url':
      return toData(part.image_url.url)
    case 'video_url':
      return toData(part.video_url.url)
    case 'input_audio': {
      const { data, format } = part.input_audio
      return { inlineData: { mimeType: `audio/${format}`, data } }
    }
    case 'file':
      if (part.file.file_data === undefined) throw unsupported('messages', 'a file by its id')
      return toData(part.file.file_data)
  }
}

/** @param url a data URL, or one that Gemini can read */
function toData(url: string): Json {
  const match = /^data:([^;,]+);base64,/.exec(url)
  if (match === null) return { fileData: { fileUri: url } }
  return { inlineData: { mimeType: match[1], data: url.slice(match[0].length) } }
}

function toTools({ tools, toolChoice }: GenerationRequest): Json {
  const allowed = toolChoice?.mode === 'allowed' ? new Set(toolChoice.names) : null
  const declared = tools.filter(({ function: { name } }) => allowed?.has(name) ?? true)
  if (declared.length === 0) return {}
  const functionDeclarations = declared.map(({ function: { name, description, parameters } }) => ({
    name,
    ...(description !== undefined && { description }),
    ...(parameters !== undefined && { parametersJsonSchema: parameters }),
  }))
  const mode = toMode(toolChoice)
  const names = toolChoice?.mode === 'function' ? { allowedFunctionNames: [toolChoice.name] } : {}
  return {
    tools: [{ functionDeclarations }],
    ...(mode !== null && { toolConfig: { functionCallingConfig: { mode, ...names } } }),
  }
}

function toMode(choice: GenerationRequest['toolChoice']): 'AUTO' | 'ANY' | 'NONE' | null {
  switch (choice?.mode) {
    case undefined:
      return null
    case 'none':
      return 'NONE'
    case 'auto':
      return 'AUTO'
    case 'allowed':
      return choice.isRequired ? 'ANY' : 'AUTO'
    default:
      return 'ANY'
  }
}

function toSampling(sampling: Sampling): Json {
  return {
    temperature: sampling.temperature,
    topP: sampling.topP,
    topK: sampling.topK,
    seed: sampling.seed,
    maxOutputTokens: sampling.maxTokens,
    presencePenalty: sampling.presencePenalty,
    frequencyPenalty: sampling.frequencyPenalty,
    ...(sampling.stop !== undefined && sampling.stop.length > 0 && { stopSequences: sampling.stop }),
  }
}

function toFormat(constraint: OutputConstraint | null): Json {
  if (constraint === null) return {}
  switch (constraint.kind) {
    case 'json_object':
      return { responseMimeType: 'application/json' }
    case 'json_schema':
      return { responseMimeType: 'application/json', responseJsonSchema: constraint.schema }
    default:
      throw unsupported('response_format', `a constraint of kind '${constraint.kind}'`)
  }
}

function toThinking({ isEnabled, effort, budgetTokens }: ReasoningOptions): Json {
  if (isEnabled === false) return { thinkingBudget: 0 }
  return {
    includeThoughts: true,
    ...(budgetTokens !== undefined && { thinkingBudget: budgetTokens }),
    ...(budgetTokens === undefined && effort !== undefined && { thinkingLevel: effort }),
  }
}
