/** The tokenizer contract: text to token ids and back, for whoever talks to engines in tokens or counts them. */
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'

/** A tokenizer to load. */
export interface TokenizerRequest {
  /** What it is found by, such as the id of a model. */
  readonly name: string
  /** A folder or a file on this machine; empty where only workers may have it. Nothing comes from elsewhere. */
  readonly source: string
  /** A Jinja template in place of the one that comes with the tokenizer. */
  readonly chatTemplatePath?: string
}

/** `failed` is remembered for some minutes; afterwards the name is free again. */
export type TokenizerState = 'pending' | 'processing' | 'completed' | 'failed'

export interface SpecialTokens {
  readonly bos: string | null
  readonly eos: string | null
  readonly unk: string | null
  readonly pad: string | null
  /** Content of every token that counts as special. */
  readonly all: readonly string[]
}

/** Whether the template wants a message's content as one string, or as a list of parts. */
export type ContentFormat = 'string' | 'parts'

/** A chat as the template sees it: messages and tools as an OpenAI chat request has them. */
export interface ChatPrompt {
  readonly messages: readonly unknown[]
  /** Only those that the choice of tools leaves; undefined or empty: none. */
  readonly tools?: readonly unknown[]
  readonly documents?: readonly unknown[]
  /** Default true. */
  readonly addGenerationPrompt?: boolean
  /** The last message is the beginning of the answer: the prompt ends with its text. */
  readonly continueFinalMessage?: boolean
  /** Further variables of the template; they win over all others. */
  readonly templateKwargs?: Readonly<Record<string, unknown>>
}

export interface EncodedPrompt {
  readonly text: string
  readonly tokenIds: Uint32Array
}

/** A part of a prompt that no template wrote. */
export interface PromptPiece {
  readonly text: string
  /** It is the content of one special token. Otherwise it is text, in which no special token is looked for. */
  readonly isToken: boolean
}

export interface DecoderOptions {
  /** Default true. */
  readonly skipSpecialTokens?: boolean
  /** A space on both sides of tokens that were added to the vocabulary, as some engines write them. Default false. */
  readonly spacesBetweenSpecialTokens?: boolean
  /** The text goes on from a prompt, so that a space at its beginning stays. Default false. */
  readonly isContinuation?: boolean
  /** The text ends before the first of these; empty ones are ignored. */
  readonly stops?: readonly string[]
  /** Ids at which the text ends, such as the tokenizer's `eosIds`. */
  readonly stopIds?: readonly number[]
  /** The stop that ended the text is part of it. Default false. */
  readonly includeStop?: boolean
}

/** Turns the ids of one answer into text as they come; for one choice of one request. */
export interface TokenDecoder {
  /** The text that is certain now: never half a character, never what may be the beginning of a stop. */
  push(id: number): string
  /** What was held back. */
  end(): string
  /** What ended the text; null while nothing has. Ids after it give no text. */
  readonly matchedStop: string | number | null
}

/** A loaded tokenizer as this thread sees it. Encoding happens on other threads, decoding here. */
export interface LoadedTokenizer {
  readonly id: string
  readonly name: string
  readonly source: string
  readonly vocabSize: number
  readonly special: SpecialTokens
  /** Ids that end an answer, ascending. */
  readonly eosIds: readonly number[]
  /** By name, `default` among them; empty when the tokenizer has none. */
  readonly templates: ReadonlyMap<string, string>
  readonly contentFormat: ContentFormat
  /** `response_template` of its configuration, as it stands there: how an answer is taken apart. Null without one. */
  readonly responseTemplate: object | null
  /** @throws chat_template_failed, chat_template_limit_exceeded (400), tokenization_failed (500), tokenizer_busy (503) */
  renderAndEncode(prompt: ChatPrompt): Promise<EncodedPrompt>
  /** @throws tokenization_failed (500), also where the vocabulary lacks a token; tokenizer_busy (503) */
  encodePieces(pieces: readonly PromptPiece[]): Promise<EncodedPrompt>
  /** @throws tokenization_failed (500), tokenizer_busy (503) */
  encode(text: string, options?: { readonly addSpecialTokens?: boolean }): Promise<Uint32Array>
  /** @throws as `renderAndEncode`, or as `encode` for a text */
  count(prompt: ChatPrompt | string): Promise<number>
  openDecoder(options?: DecoderOptions): TokenDecoder
}

/** What a fetch of a bundle must keep to. */
export interface BundleLimits {
  /** Of the archive. */
  readonly maxBytes: number
  /** Milliseconds, for the whole stream. */
  readonly timeoutMs: number
}

/** Workers that serve the files of their tokenizer, as one zip archive. Asked on control only. */
export interface BundleSource {
  /** True for workers that may have one. */
  covers(worker: WorkerEntry): boolean
  /**
   * Writes the archive to a new file, and checks it as far as the worker tells how.
   * @throws Error with the reason; what was written stays then
   */
  fetch(worker: WorkerEntry, file: string, limits: BundleLimits): Promise<void>
}

export interface TokenizerService {
  /** By name (a model's id) first, then by id. Undefined when it is not there, or not loaded yet. */
  find(nameOrId: string): LoadedTokenizer | undefined
  /** In the order in which they were added. */
  list(): readonly LoadedTokenizer[]
  /** Loads it in the background unless the name is taken; from any thread. */
  ensure(request: TokenizerRequest): Promise<void>
  /** Undefined when nothing of that name was asked for. */
  status(nameOrId: string): Promise<{ readonly state: TokenizerState; readonly message: string } | undefined>
  /** Where tokenizers come from that this machine does not have. Of the plugin of a transport, while it registers. */
  bundlesFrom(source: BundleSource): void
}

export const Tokenizers = token<TokenizerService>('tokenizers')
