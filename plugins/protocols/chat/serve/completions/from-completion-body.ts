/** A text completions body as internal requests, one a prompt. */
import type { GenerationRequest, OutputConstraint } from '#kernel'
import { parseBoundedText } from '#shared'
import { chatErrors } from '../../errors.ts'
import type { CompletionRequest } from '../../wire/completion.ts'
import { toSampling } from '../chat/from-chat-body.ts'

export function promptsOf({ prompt }: CompletionRequest): readonly string[] {
  return typeof prompt === 'string' ? [prompt] : (prompt ?? [])
}

/** @throws invalid_json_schema (400) */
export function fromCompletionBody(body: CompletionRequest): GenerationRequest[] {
  const rest: Omit<GenerationRequest, 'prompt'> = {
    model: body.model,
    tools: [],
    toolChoice: null,
    constraint: toConstraint(body),
    sampling: toSampling(body),
    reasoning: null,
    choices: body.best_of ?? body.n ?? 1,
    topLogprobs: body.logprobs ?? (body.best_of == null ? null : 0),
    ...(body.user != null && { user: body.user }),
    ...((body as { return_token_ids?: unknown }).return_token_ids === true && { wantsTokenIds: true }),
  }
  const named = (at: number, of: number) =>
    body.rid == null ? {} : { carried: new Map([['rid', of === 1 ? body.rid : `${body.rid}-p${at}`]]) }
  const prompts = promptsOf(body)
  return prompts.map((text, at) => ({
    ...rest,
    prompt: { kind: 'text', text },
    ...named(at, prompts.length),
  }))
}

export function toConstraint(body: {
  readonly json_schema?: string | null
  readonly regex?: string | null
  readonly ebnf?: string | null
}): OutputConstraint | null {
  if (body.regex != null) return { kind: 'regex', pattern: body.regex }
  if (body.ebnf != null) return { kind: 'ebnf', grammar: body.ebnf }
  if (body.json_schema == null) return null
  try {
    return { kind: 'json_schema', name: 'answer', schema: parseBoundedText(body.json_schema) }
  } catch (cause) {
    throw chatErrors.invalid_json_schema.with({ param: 'json_schema', cause })
  }
}
