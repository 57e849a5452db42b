/** The native generate format: an object (an array for several answers), or events whose text grows. */
import type { Draft, Limits } from './draft.ts'
import { simErrors } from './errors.ts'
import {
  DONE_EVENT,
  draftAnswer,
  type Generation,
  generationOf,
  largest,
  limitsOf,
  type Setting,
  type StreamEvent,
} from './generation.ts'
import { type PromptText, promptsOf } from './prompt.ts'
import { tokenId } from './tokens.ts'
import type { GenerateRequest } from './wire.ts'

interface Output {
  readonly id: string
  readonly prompt: PromptText
  readonly draft: Draft
}

/**
 * @throws missing_prompt (400) unless exactly one of text and input_ids is given
 * @throws context_length_exceeded (400)
 */
export function generateNative(request: GenerateRequest, setting: Setting): Generation {
  const source = request.text ?? request.input_ids ?? null
  if (source === null || (request.text != null && request.input_ids != null)) throw simErrors.missing_prompt()
  const prompts = promptsOf(source)
  const params = request.sampling_params ?? {}
  const limits: Limits = {
    ...limitsOf(params, params.max_new_tokens),
    minTokens: params.min_new_tokens ?? params.min_tokens ?? 0,
  }
  const perPrompt = params.n ?? 1
  const isSingle = prompts.length * perPrompt === 1 && !Array.isArray(request.text)
  const outputs = prompts.flatMap((prompt, promptIndex) =>
    Array.from({ length: perPrompt }, (_, index) => ({
      id: isSingle ? idOf(request, setting, 0) : `${idOf(request, setting, promptIndex)}-${index}`,
      prompt,
      draft: draftAnswer(setting, prompt, index, limits),
    })),
  )
  const tokens = outputs.map(({ draft }) => draft.completionTokens)
  return generationOf(setting, prompts, tokens, {
    body: () => {
      const whole = outputs.map((output) => wholeOutput(output, setting))
      return JSON.stringify(isSingle ? whole[0] : whole)
    },
    events: () => generateEvents(outputs, setting),
  })
}

function idOf(request: GenerateRequest, setting: Setting, index: number): string {
  const { rid } = request
  if (Array.isArray(rid)) return rid[index] ?? setting.id
  return rid ?? setting.id
}

function wholeOutput({ id, prompt, draft }: Output, setting: Setting) {
  return {
    text: draft.text,
    output_ids: draft.pieces.map(tokenId),
    meta_info: {
      ...metaInfo(setting, id, prompt.tokens, draft.completionTokens),
      finish_reason: finishReason(draft),
      e2e_latency: latencySec(setting),
    },
  }
}

/** Text is cumulative, ids are only the new ones; the last event of an output says why it ended. */
function* generateEvents(outputs: readonly Output[], setting: Setting): Generator<StreamEvent> {
  const texts = outputs.map(() => '')
  const longest = largest(outputs.map(({ draft }) => Math.max(1, draft.pieces.length)))
  for (let tick = 0; tick < longest; tick += 1) {
    for (const [index, { id, prompt, draft }] of outputs.entries()) {
      const last = Math.max(0, draft.pieces.length - 1)
      if (tick > last) continue
      const piece = draft.pieces[tick] ?? ''
      texts[index] += piece
      const isLast = tick === last
      const event = {
        text: texts[index],
        output_ids: piece === '' ? [] : [tokenId(piece)],
        meta_info: {
          ...metaInfo(setting, id, prompt.tokens, isLast ? draft.completionTokens : tick + 1),
          finish_reason: isLast ? finishReason(draft) : null,
          ...(isLast && { e2e_latency: latencySec(setting) }),
        },
        index,
      }
      yield { tick, tokens: piece === '' ? 0 : 1, data: `data: ${JSON.stringify(event)}\n\n` }
    }
  }
  yield { tick: Math.max(0, longest - 1), tokens: 0, data: DONE_EVENT }
}

function metaInfo(setting: Setting, id: string, promptTokens: number, completionTokens: number) {
  return {
    id,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    cached_tokens: setting.cache.tokens ?? 0,
    weight_version: 'default',
  }
}

function finishReason(draft: Draft) {
  if (draft.finishReason === 'length') return { type: 'length', length: draft.completionTokens }
  return draft.matchedStop === null ? { type: 'stop' } : { type: 'stop', matched: draft.matchedStop }
}

/** Seconds since the request arrived. */
function latencySec(setting: Setting): number {
  return (performance.now() - setting.startedAtMs) / 1000
}
