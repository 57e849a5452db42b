/** The loaded tokenizers on a serving thread: texts are encoded by the threads of control and decoded on this thread. */
import type {
  BundleSource,
  ChatPrompt,
  DecoderOptions,
  EncodedPrompt,
  Host,
  LoadedTokenizer,
  PromptPiece,
  TokenDecoder,
  TokenizerRequest,
  TokenizerService,
  TokenizerState,
} from '#kernel'
import { EncodeTexts, EnsureTokenizer, StatusOfTokenizer, type TokenizerRecord } from './commands.ts'
import type { EncodeItem, EncodeResult } from './encoder-thread.ts'
import { tokenizerErrors } from './errors.ts'
import { StoppingDecoder } from './id-decoder.ts'
import { TokenTable } from './token-table.ts'

type Done = Extract<EncodeResult, { kind: 'done' }>

interface WaitingItem {
  readonly item: EncodeItem
  readonly resolve: (result: EncodeResult) => void
  readonly reject: (error: unknown) => void
}

export class Service implements TokenizerService {
  readonly #host: Pick<Host, 'command' | 'upstream'>
  readonly #batch: WaitingItem[] = []
  #tokenizers: readonly ServedTokenizer[] = []
  /** Sources of the transports; used on control. */
  readonly bundles: BundleSource[] = []

  constructor(host: Pick<Host, 'command' | 'upstream'>) {
    this.#host = host
  }

  update(records: readonly TokenizerRecord[]): void {
    const known = new Map(this.#tokenizers.map((tokenizer) => [tokenizer.id, tokenizer]))
    this.#tokenizers = records.map((record) => known.get(record.id) ?? new ServedTokenizer(record, this))
  }

  /** Of a virtual model: that of its first target. */
  find(nameOrId: string): ServedTokenizer | undefined {
    const wanted = this.#host.upstream.firstTargetOf(nameOrId)
    return (
      this.#tokenizers.find(({ name }) => name === wanted) ?? this.#tokenizers.find(({ id }) => id === wanted)
    )
  }

  list(): readonly ServedTokenizer[] {
    return this.#tokenizers
  }

  ensure(request: TokenizerRequest): Promise<void> {
    return this.#host.command(EnsureTokenizer, request)
  }

  async status(nameOrId: string): Promise<{ state: TokenizerState; message: string } | undefined> {
    return (await this.#host.command(StatusOfTokenizer, nameOrId)) ?? undefined
  }

  bundlesFrom(source: BundleSource): void {
    this.bundles.push(source)
  }

  /** Texts of one turn of the event loop and one tokenizer go in one message. @throws tokenizer_busy, tokenization_failed, chat_template_failed, chat_template_limit_exceeded */
  async encode(item: EncodeItem): Promise<Done> {
    const { promise, resolve, reject } = Promise.withResolvers<EncodeResult>()
    this.#batch.push({ item, resolve, reject })
    if (this.#batch.length === 1) setImmediate(() => this.#send())
    const result = await promise
    if (result.kind === 'done') return result
    if (result.kind === 'refused') throw tokenizerErrors.chat_template_failed(result.message)
    if (result.kind === 'exceeded') {
      const name = this.find(item.tokenizer)?.name ?? item.tokenizer
      throw tokenizerErrors.chat_template_limit_exceeded(name, result.message)
    }
    throw tokenizerErrors.tokenization_failed(result.message)
  }

  /** One message per tokenizer, because a message is answered as a whole. */
  #send(): void {
    const batches = Map.groupBy(this.#batch.splice(0), ({ item }) => item.tokenizer)
    for (const batch of batches.values()) void this.#sendBatch(batch)
  }

  async #sendBatch(batch: readonly WaitingItem[]): Promise<void> {
    try {
      const results = await this.#host.command(
        EncodeTexts,
        batch.map(({ item }) => item),
      )
      for (const [place, { resolve }] of batch.entries()) resolve(results[place])
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

export class ServedTokenizer implements LoadedTokenizer {
  readonly id
  readonly name
  readonly source
  readonly vocabSize
  readonly special
  readonly eosIds
  readonly templates: ReadonlyMap<string, string>
  readonly contentFormat
  readonly reports
  readonly responseTemplate
  readonly #service: Service
  readonly #record: TokenizerRecord
  #table: TokenTable | null = null

  constructor(record: TokenizerRecord, service: Service) {
    const { id, name, source, facts } = record
    this.#record = record
    this.#service = service
    this.id = id
    this.name = name
    this.source = source
    this.vocabSize = facts.vocabSize
    this.special = facts.special
    this.eosIds = facts.eosIds
    this.templates = new Map(facts.templates)
    this.contentFormat = facts.contentFormat
    this.reports = facts.reports
    this.responseTemplate = facts.responseTemplate
  }

  async renderAndEncode(prompt: ChatPrompt): Promise<EncodedPrompt> {
    const { text, ids } = await this.#service.encode({ tokenizer: this.id, kind: 'chat', prompt })
    return { text, tokenIds: ids }
  }

  async encodePieces(pieces: readonly PromptPiece[]): Promise<EncodedPrompt> {
    const { ids } = await this.#service.encode({ tokenizer: this.id, kind: 'pieces', pieces })
    return { text: pieces.map(({ text }) => text).join(''), tokenIds: ids }
  }

  async encode(text: string, { addSpecialTokens = false } = {}): Promise<Uint32Array> {
    return (await this.#service.encode({ tokenizer: this.id, kind: 'text', text, addSpecialTokens })).ids
  }

  async count(prompt: ChatPrompt | string): Promise<number> {
    if (typeof prompt === 'string') return (await this.encode(prompt)).length
    return (await this.renderAndEncode(prompt)).tokenIds.length
  }

  /** @throws detokenization_failed (500) where the vocabulary's decoder is of a kind that is not known */
  openDecoder(options?: DecoderOptions): TokenDecoder {
    const { rules, table } = this.#record.facts
    if (rules === null)
      throw tokenizerErrors.detokenization_failed('the decoder type of the vocabulary is not supported')
    this.#table ??= new TokenTable(table)
    return new StoppingDecoder(this.#table, rules, options)
  }
}
