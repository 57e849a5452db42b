/** What the client wants to see of the items. */
import type { SealedText, TextSeal } from '../prompt/sealed-text.ts'
import type { CreateRequest } from '../read/read-request.ts'

export interface OutputWishes {
  readonly hasLogprobs: boolean
  /** Reasoning is told as a summary. */
  readonly hasSummary: boolean
  /** Seals reasoning for the client to keep; null when it does not want to. */
  readonly seal: ((text: SealedText) => string) | null
  readonly hasSources: boolean
  readonly hasCodeOutputs: boolean
  readonly hasSearchResults: boolean
}

export function wishesOf(
  { include, store, summary }: CreateRequest,
  seal: TextSeal,
  tenant: string,
): OutputWishes {
  const isSealed = include.has('reasoning.encrypted_content') || !store
  return {
    hasLogprobs: include.has('message.output_text.logprobs'),
    hasSummary: summary !== undefined,
    seal: isSealed ? (text) => seal.seal(tenant, text) : null,
    hasSources: include.has('web_search_call.action.sources'),
    hasCodeOutputs: include.has('code_interpreter_call.outputs'),
    hasSearchResults: include.has('file_search_call.results'),
  }
}
