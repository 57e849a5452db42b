/** Rules for decoding one id at a time, from the `decoder` section of a tokenizer. */

/** How pieces of the vocabulary become text. Plain data: it crosses threads. */
export interface DecoderRules {
  /**
   * `bytes`: pieces are bytes written as printable letters, and invalid ones are replaced as UTF-8 decoders do.
   * `fallback`: pieces are text, `<0xNN>` stands for one byte, and each invalid one is replaced.
   * `spaced`: pieces are words with a space between each two, or parts of words.
   */
  readonly kind: 'bytes' | 'fallback' | 'spaced'
  /** In order: [pattern, replacement], applied to each piece. */
  readonly replacements: readonly (readonly [string, string])[]
  /** How many leading characters are taken off the whole text while they equal `strip`. */
  readonly stripCount: number
  readonly strip: string
  /** Spaces of the first piece are dropped. */
  readonly firstDropsSpaces: boolean
  /** Begins a piece that continues a word, as in `##ing`; null if pieces are whole words. */
  readonly wordPrefix: string | null
  /** Spaces before punctuation and English contractions are removed. */
  readonly cleansSpaces: boolean
}

interface DecoderStep {
  readonly type: string
  readonly decoders?: readonly DecoderStep[]
  readonly pattern?: { readonly String?: string }
  readonly content?: string
  readonly start?: number
  readonly stop?: number
  readonly replacement?: string
  readonly prepend_scheme?: string
  readonly add_prefix_space?: boolean
  readonly prefix?: string
  readonly cleanup?: boolean
}

export const PLAIN_RULES: DecoderRules = {
  kind: 'fallback',
  replacements: [],
  stripCount: 0,
  strip: ' ',
  firstDropsSpaces: false,
  wordPrefix: null,
  cleansSpaces: false,
}

/**
 * @param decoder the parsed section; null if the file has none
 * @returns null for an unsupported kind: such a tokenizer only encodes
 */
export function toDecoderRules(decoder: unknown): DecoderRules | null {
  if (decoder === null || decoder === undefined) return { ...PLAIN_RULES, kind: 'spaced' }
  const step = decoder as DecoderStep
  if (step.type === 'WordPiece') {
    const { prefix = '##', cleanup = true } = step
    return { ...PLAIN_RULES, kind: 'spaced', wordPrefix: prefix, cleansSpaces: cleanup }
  }
  const steps = step.type === 'Sequence' ? (step.decoders ?? []) : [step]
  let rules: DecoderRules | null = PLAIN_RULES
  for (const one of steps) rules = rules && withStep(rules, one)
  return rules
}

function withStep(rules: DecoderRules, step: DecoderStep): DecoderRules | null {
  switch (step.type) {
    case 'ByteLevel':
      return { ...rules, kind: 'bytes' }
    case 'ByteFallback':
    case 'Fuse':
      return rules
    case 'Replace': {
      const pattern = step.pattern?.String
      if (pattern === undefined || pattern === '') return null
      return { ...rules, replacements: [...rules.replacements, [pattern, step.content ?? '']] }
    }
    case 'Metaspace': {
      const isKept = step.prepend_scheme === 'never' || step.add_prefix_space === false
      const replacements = [...rules.replacements, [step.replacement ?? '▁', ' '] as const]
      return { ...rules, replacements, firstDropsSpaces: !isKept }
    }
    case 'Strip':
      if ((step.stop ?? 0) !== 0) return null
      return { ...rules, stripCount: step.start ?? 0, strip: step.content ?? ' ' }
    default:
      return null
  }
}
