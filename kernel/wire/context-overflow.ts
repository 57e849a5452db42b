/** Recognises the refusal of a prompt that is longer than the context of the model. */
import { parseBoundedText } from './bounded-json.ts'
import { type WorkerMessage, workerMessage } from './worker-message.ts'

/** Codes and types: OpenAI and those that follow it; llama.cpp. */
const CODES: ReadonlySet<string> = new Set(['context_length_exceeded', 'exceed_context_size_error'])

/** Engines that send no code word it in one of these ways; in lower case. */
const PHRASES = [
  // vLLM, SGLang, OpenAI, Mistral, DeepSeek, Together
  'context length',
  'context_length',
  // OpenAI Responses, llama-cpp-python
  'context window',
  // llama.cpp
  'context size',
  // vLLM
  'maximum model length',
  // TensorRT-LLM
  'should not exceed max_num_tokens',
  // Anthropic
  'prompt is too long',
  'context limit',
  // Bedrock
  'input is too long',
  'too many tokens',
  'too many input tokens',
  // Gemini
  'maximum number of tokens',
  // xAI
  'maximum prompt length',
] as const

/** The phrases are at the beginning; some engines append the request. */
const MAX_TEXT = 1_000

/** Whether the error of a request with status 400 is one of its length. */
export function isContextOverflow({ code, text }: Pick<WorkerMessage, 'code' | 'text'>): boolean {
  if (code !== null && CODES.has(code)) return true
  const beginning = text.slice(0, MAX_TEXT).toLowerCase()
  return PHRASES.some((phrase) => beginning.includes(phrase))
}

/** As `isContextOverflow`, for the body of a response; false for a body that is not JSON. */
export function isContextOverflowBody(body: Buffer): boolean {
  const said = readMessage(body)
  return said !== null && isContextOverflow({ text: said.text, code: said.code ?? said.type })
}

function readMessage(body: Buffer): WorkerMessage | null {
  try {
    return workerMessage(parseBoundedText(body.toString('utf8')))
  } catch {
    return null
  }
}
