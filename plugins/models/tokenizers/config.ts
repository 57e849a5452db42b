/** The tokenizers section of the configuration file: which tokenizers, from where, and what they may cost. */
import { type Static, Type } from '#kernel'
import { DEFAULT_LIMITS } from './render-budget.ts'

const count = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, default: value, description })

export const tokenizersConfig = Type.Object(
  {
    load: Type.Array(
      Type.Object(
        {
          name: Type.String({ minLength: 1, description: 'Id of the model that it belongs to.' }),
          source: Type.String({ minLength: 1, description: 'Folder or file.' }),
          chatTemplatePath: Type.Optional(Type.String({ minLength: 1 })),
        },
        { additionalProperties: false },
      ),
      {
        default: [],
        description: 'Tokenizers to load at start, in the background; one that fails is told in the log.',
      },
    ),
    autoload: Type.Boolean({
      default: true,
      description:
        'Load the tokenizer that a worker names in its labels (tokenizer_path, else model_path) where that is an absolute path on this machine, under the ids of its models.',
    }),
    saved: Type.Union([Type.Literal('load'), Type.Literal('forget')], {
      default: 'load',
      description:
        'Tokenizers added through the API are kept by the storage plugin where that is enabled: their paths, not their files. forget drops them at start.',
    }),
    roots: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        'Folders that POST /v1/tokenizers may load tokenizers and templates from, absolute; symbolic links are resolved first. Empty: such requests may name weir:sample only. Paths that workers name lie inside of them too where there are any; those of this file need not.',
    }),
    maxTokenizers: count(64, 1, 1_024, 'Most tokenizers at one time, those being loaded included.'),
    maxFileBytes: count(134_217_728, 1, 1_073_741_824, 'Largest vocabulary file, bytes.'),
    loadMs: count(600_000, 1, 3_600_000, 'Longest time for loading one tokenizer, milliseconds.'),
    encodeMs: count(
      60_000,
      1,
      3_600_000,
      'Longest time that a batch of texts may take, milliseconds; its thread is replaced then.',
    ),
    poolThreads: count(
      1,
      1,
      64,
      'Threads that render and encode, for the whole process. Each holds its own copy of every vocabulary it has used.',
    ),
    queueLimit: count(4_096, 1, 1_000_000, 'Texts that may wait; more are refused with 503.'),
    heapMiB: count(
      1_024,
      64,
      16_384,
      'Most JavaScript heap of such a thread, MiB. Vocabularies lie outside it.',
    ),
    rendering: Type.Object(
      {
        maxSteps: count(
          DEFAULT_LIMITS.maxSteps,
          1,
          1_000_000_000,
          'Statements and expressions that a chat template may evaluate for one chat; 64 characters that its functions read or write count as one. A chat that needs more is rejected with 400.',
        ),
        maxCharacters: count(
          DEFAULT_LIMITS.maxCharacters,
          1,
          134_217_728,
          'Characters of the prompt, and of any other text that a chat template computes.',
        ),
        maxMs: count(
          DEFAULT_LIMITS.maxMs,
          1,
          600_000,
          'Longest time for rendering one chat, milliseconds. The trials of the templates of a tokenizer that is loaded have as much together.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    promptCache: Type.Object(
      {
        enabled: Type.Boolean({ default: false, description: 'Remember the ids of whole prompts.' }),
        maxEntries: count(10_000, 1, 10_000_000, 'Most prompts.'),
        maxBytes: count(33_554_432, 1, 68_719_476_736, 'Most memory, bytes, per tokenizer and thread.'),
      },
      { default: {}, additionalProperties: false },
    ),
    segmentCache: Type.Object(
      {
        enabled: Type.Boolean({
          default: false,
          description:
            'Remember the ids of what lies between special tokens, so that of a chat only its new messages are encoded. Used only with tokenizers that pass a check when they are loaded.',
        }),
        maxBytes: count(52_428_800, 1, 68_719_476_736, 'Most memory, bytes, per tokenizer and thread.'),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

export type TokenizersConfig = Static<typeof tokenizersConfig>
