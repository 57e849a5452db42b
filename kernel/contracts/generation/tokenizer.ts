/** The tokenizer contract: text to token ids and back, for engines that take tokens and for token counts. */
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'

/** A tokenizer to load. */
export interface TokenizerRequest {
  /** Name for lookups, such as the id of a model. */
  readonly name: string
  /** A local folder or file; empty if only workers may provide it. Nothing is downloaded from elsewhere. */
  readonly source: string
  /** A Jinja template that replaces the tokenizer's own. */
  readonly chatTemplatePath?: string
  /** The configuration file names the source, which may then lie outside `plugins.tokenizers.roots`. */
  readonly isConfigured?: boolean
}

/** `failed` is kept for some minutes; after that the name can be loaded again. */
export type TokenizerState = 'pending' | 'processing' | 'completed' | 'failed'

export interface SpecialTokens {
  readonly bos: string | null
  readonly eos: string | null
  readonly unk: string | null
  readonly pad: string | null
  /** Content of every token that counts as special. */
  readonly all: readonly string[]
}

/** Whether the template takes a message's content as one string or as a list of parts. */
export type ContentFormat = 'string' | 'parts'

/** Input of the chat template: messages and tools as in an OpenAI chat request. */
export interface ChatPrompt {
  readonly messages: readonly unknown[]
  /** Only those that the tool choice allows; objects, or their JSON texts, of which numbers and the order of members are kept. */
  readonly tools?: readonly unknown[]
  /** Objects or JSON texts, as tools. */
  readonly documents?: readonly unknown[]
  /** Default true. */
  readonly addGenerationPrompt?: boolean
  /** The last message begins the answer: the prompt ends with its text. */
  readonly continueFinalMessage?: boolean
  /** Further variables of the template, which take precedence over all others. */
  readonly templateKwargs?: Readonly<Record<string, unknown>>
}

export interface EncodedPrompt {
  readonly text: string
  readonly tokenIds: Uint32Array
}

/** A part of a prompt that is written without a template. */
export interface PromptPiece {
  readonly text: string
  /** True if the text is one special token; otherwise special tokens in the text are not recognized. */
  readonly isToken: boolean
}

export interface DecoderOptions {
  /** Default true. */
  readonly skipSpecialTokens?: boolean
  /** Adds a space on both sides of added tokens, as some engines do. Default false. */
  readonly spacesBetweenSpecialTokens?: boolean
  /** The text continues a prompt, so that a space at its beginning is kept. Default false. */
  readonly isContinuation?: boolean
  /** Stop strings, before the first of which the text ends; empty ones are ignored. */
  readonly stops?: readonly string[]
  /** Ids at which the text ends, such as the tokenizer's `eosIds`. */
  readonly stopIds?: readonly number[]
  /** Keeps the stop string in the text. Default false. */
  readonly includeStop?: boolean
}

/** Decodes the ids of one choice of one request as they arrive. */
export interface TokenDecoder {
  /** Text that is certain: whole characters, and no possible beginning of a stop string. */
  push(id: number): string
  /** Text that was held back. */
  end(): string
  /** The stop that ended the text; null before. Later ids give no text. */
  readonly matchedStop: string | number | null
}

/** A loaded tokenizer. Encoding runs on other threads, decoding on this one. */
export interface LoadedTokenizer {
  readonly id: string
  readonly name: string
  readonly source: string
  readonly vocabSize: number
  readonly special: SpecialTokens
  /** Ids that end an answer, ascending. */
  readonly eosIds: readonly number[]
  /** By name, including `default`; empty if the tokenizer has none. */
  readonly templates: ReadonlyMap<string, string>
  readonly contentFormat: ContentFormat
  /** `response_template` of its configuration, which describes how an answer is parsed; null if there is none. */
  readonly responseTemplate: object | null
  /** @throws chat_template_failed, chat_template_limit_exceeded (400), tokenization_failed (500), tokenizer_busy (503) */
  renderAndEncode(prompt: ChatPrompt): Promise<EncodedPrompt>
  /** @throws tokenization_failed (500), also if the vocabulary lacks a token; tokenizer_busy (503) */
  encodePieces(pieces: readonly PromptPiece[]): Promise<EncodedPrompt>
  /** @throws tokenization_failed (500), tokenizer_busy (503) */
  encode(text: string, options?: { readonly addSpecialTokens?: boolean }): Promise<Uint32Array>
  /** @throws as `renderAndEncode`, or as `encode` for a text */
  count(prompt: ChatPrompt | string): Promise<number>
  openDecoder(options?: DecoderOptions): TokenDecoder
}

/** Limits of a download. */
export interface BundleLimits {
  /** Size of the archive. */
  readonly maxBytes: number
  /** Milliseconds, for the whole stream. */
  readonly timeoutMs: number
}

/** Downloads the files of a worker's tokenizer as one zip archive. Used on control only. */
export interface BundleSource {
  /** True for workers that may provide one. */
  covers(worker: WorkerEntry): boolean
  /**
   * Writes the archive to a new file and checks it against the worker's digest, if there is one.
   * @throws Error with the reason; the partial file remains
   */
  fetch(worker: WorkerEntry, file: string, limits: BundleLimits): Promise<void>
}

export interface TokenizerService {
  /** By name (a model's id) first, then by id. Undefined if unknown or not loaded yet. */
  find(nameOrId: string): LoadedTokenizer | undefined
  /** In order of registration. */
  list(): readonly LoadedTokenizer[]
  /** Loads it in the background unless the name is taken. Callable on any thread. */
  ensure(request: TokenizerRequest): Promise<void>
  /** Undefined for an unknown name. */
  status(nameOrId: string): Promise<{ readonly state: TokenizerState; readonly message: string } | undefined>
  /** Sets the source of tokenizers that are not on this machine. Called by a transport's plugin in `register`. */
  bundlesFrom(source: BundleSource): void
}

export const Tokenizers = token<TokenizerService>('tokenizers')
