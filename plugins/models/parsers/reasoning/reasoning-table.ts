/** Every reasoning format: its name, its marks, and the models that use it. */
import { RESPONSE_WRAPPERS } from '../formats/tool-format.ts'
import { ChannelReasoningReader } from './channel-reasoning.ts'
import { FramedReasoningReader } from './framed-reasoning.ts'
import {
  compileReasoning,
  type ReasoningReader,
  type ReasoningSink,
  type TaggedReasoning,
  TaggedReasoningReader,
} from './reasoning-reader.ts'
import { SuffixedReasoningReader } from './suffixed-reasoning.ts'

export interface ReasoningFormat {
  readonly name: string
  readonly aliases: readonly string[]
  /** Output always begins inside reasoning. */
  readonly isAlwaysInside: boolean
  /** Marks around the reasoning; null if they are not fixed. */
  readonly marks: Pick<TaggedReasoning, 'start' | 'end'> | null
  /** Text and reasoning are both in frames, which are never text. */
  readonly isFramed: boolean
  /** Its marks are special tokens, which the engine must not drop. */
  readonly needsSpecialTokens: boolean
  /** @param isInside whether the prompt ended inside reasoning; undefined: depends on the format */
  open(sink: ReasoningSink, isInside?: boolean): ReasoningReader
}

type Traits = Partial<Omit<ReasoningFormat, 'name' | 'open'>>

function format(
  name: string,
  open: (sink: ReasoningSink, isInside: boolean) => ReasoningReader,
  traits: Traits,
): ReasoningFormat {
  const { isAlwaysInside = false } = traits
  return {
    name,
    aliases: [],
    isAlwaysInside,
    marks: null,
    isFramed: false,
    needsSpecialTokens: false,
    ...traits,
    open: (sink, isInside = isAlwaysInside) => open(sink, isInside),
  }
}

function tagged(name: string, marks: TaggedReasoning, traits: Traits = {}): ReasoningFormat {
  const compiled = compileReasoning(marks)
  const open = (sink: ReasoningSink, isInside: boolean) => new TaggedReasoningReader(sink, compiled, isInside)
  return format(name, open, { marks, ...traits })
}

const THINK: TaggedReasoning = { start: '<think>', end: '</think>' }
const framed = { isFramed: true, needsSpecialTokens: true }
const always = { isAlwaysInside: true }

export const reasoningFormats: readonly ReasoningFormat[] = [
  tagged('base', THINK, { aliases: ['olmo3', 'dots3', 'lfm2.5', 'llama_nemotron', 'minicpm5'] }),
  tagged('deepseek_r1', THINK, { ...always, aliases: ['deepseek-r1'] }),
  tagged('deepseek_v31', THINK, { aliases: ['deepseek-v3', 'deepseek_v3'] }),
  tagged('deepseek_v4', THINK),
  tagged('deepseek_v41', { ...THINK, dropsStrayEnd: true }, { aliases: ['deepseek_v4.1'] }),
  tagged('qwen3', THINK, { aliases: ['qwen3_tagged', 'qwen3_tagged_direct', 'iquest', 'ling'] }),
  tagged('qwen3_thinking', THINK, { ...always, aliases: ['qwen3-thinking'] }),
  tagged('glm45', THINK, { aliases: ['glm', 'glm4', 'glm47'] }),
  tagged('step3', THINK, always),
  tagged('minimax', THINK, { ...always, aliases: ['minimax_m2', 'minimax-append-think'] }),
  tagged('minimax_m3', { start: '<mm:think>', end: '</mm:think>' }),
  tagged('kimi', { start: '◁think▷', end: '◁/think▷' }),
  tagged('kimi_k25', THINK, { aliases: ['kimi_k2'] }),
  tagged('kimi_thinking', THINK, always),
  tagged('nano_v3', THINK),
  tagged(
    'mistral_v13',
    { start: '[THINK]', end: '[/THINK]' },
    { aliases: ['mistral'], needsSpecialTokens: true },
  ),
  tagged('k2_horizon', { start: '<ifm|think>', end: '</ifm|think>' }),
  tagged('seed_oss', { start: '<seed:think>', end: '</seed:think>' }),
  tagged(
    'gemma4',
    { start: '<|channel>thought\n', end: '<channel|>', dropsStrayEnd: true },
    { needsSpecialTokens: true },
  ),
  tagged('cohere_cmd', {
    start: '<|START_THINKING|>',
    end: '<|END_THINKING|>',
    wrappers: RESPONSE_WRAPPERS,
  }),
  format('hy_v4', (sink, isInside) => new SuffixedReasoningReader(sink, isInside), { aliases: ['hy4'] }),
  format('kimi_k3', (sink, isInside) => new ChannelReasoningReader(sink, isInside), framed),
  format('inkling', (sink, isInside) => new FramedReasoningReader(sink, isInside), framed),
]

/** Names of formats without reasoning: the text is not changed. */
const WITHOUT_REASONING: ReadonlySet<string> = new Set([
  'passthrough',
  'plain',
  'function_gemma',
  'json',
  'qwen2.5',
  'xlam',
])

export function hasNoReasoning(name: string): boolean {
  return WITHOUT_REASONING.has(name)
}

const byName = new Map(
  reasoningFormats.flatMap((format) =>
    [format.name, ...format.aliases].map((name) => [name, format] as const),
  ),
)

/** Finds a format by its exact, case-sensitive name or alias. */
export function findReasoningFormat(name: string): ReasoningFormat | undefined {
  return byName.get(name)
}
