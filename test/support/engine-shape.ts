/** The routes that identify an engine: responses of a scripted worker to health probes and discovery. */
import { type Answer, jsonAnswer, rawAnswer, sseAnswer } from './worker-answer.ts'

export type EngineShape = 'sglang' | 'vllm' | 'plain'

/**
 * Responses by `METHOD /path` for one engine.
 *
 * @param models model ids; generation responses name the first
 */
export function engineAnswers(shape: EngineShape, models: readonly string[]): Map<string, Answer> {
  const model = models[0] ?? 'test-model'
  const answers = new Map<string, Answer>([
    ['GET /health', rawAnswer('', { status: 200 })],
    ['GET /v1/models', jsonAnswer(modelList(shape, models))],
    ['POST /v1/chat/completions', jsonAnswer(chatCompletion(model))],
  ])
  if (shape === 'sglang') {
    const serverInfo = jsonAnswer({ version: '0.5.3', model_path: model, tp_size: 1, dp_size: 1 })
    const modelInfo = jsonAnswer({ model_path: model, is_generation: true, max_context_length: 32768 })
    answers.set('GET /server_info', serverInfo).set('GET /get_server_info', serverInfo)
    answers.set('GET /model_info', modelInfo).set('GET /get_model_info', modelInfo)
    answers.set('GET /health_generate', rawAnswer('', { status: 200 }))
  }
  if (shape === 'vllm') answers.set('GET /version', jsonAnswer({ version: '0.11.0' }))
  return answers
}

function modelList(shape: EngineShape, models: readonly string[]): object {
  const owner = shape === 'plain' ? 'organization' : shape
  return {
    object: 'list',
    data: models.map((id) => ({
      id,
      object: 'model',
      created: 1_700_000_000,
      owned_by: owner,
      root: id,
      max_model_len: 32768,
    })),
  }
}

/** A non-streamed chat completion. */
export function chatCompletion(model: string, text = 'Hello from the worker.'): object {
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 1_700_000_000,
    model,
    choices: [
      { index: 0, message: { role: 'assistant', content: text }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 },
  }
}

/** Data of the events of a streamed chat completion, `[DONE]` last. */
export function chatChunks(model: string, texts: readonly string[]): string[] {
  const chunk = (delta: object, finish: string | null) =>
    JSON.stringify({
      id: 'chatcmpl-scripted',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    })
  const first = chunk({ role: 'assistant', content: '' }, null)
  return [first, ...texts.map((text) => chunk({ content: text }, null)), chunk({}, 'stop'), '[DONE]']
}

/** A streamed chat completion without pauses. */
export function chatStream(model: string, texts: readonly string[]): Answer {
  return sseAnswer(chatChunks(model, texts))
}
