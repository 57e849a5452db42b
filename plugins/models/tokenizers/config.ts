/** The tokenizers section of the configuration file. */
import { type Static, Type } from '#kernel'
import { DEFAULT_LIMITS } from './render-budget.ts'

const count = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, default: value, description })

export const tokenizersConfig = Type.Object(
  {
    load: Type.Array(
      Type.Object(
        {
          name: Type.String({ minLength: 1, description: 'Id of the model that uses the tokenizer.' }),
          source: Type.String({ minLength: 1, reads: 'use', description: 'Path of a folder or file.' }),
          chatTemplatePath: Type.Optional(Type.String({ minLength: 1, reads: 'use' })),
        },
        { additionalProperties: false },
      ),
      {
        default: [],
        description:
          'Tokenizers to load at start, in the background. Readiness waits for them, at most for kernel.lifecycle.readinessWaitMs; failures are logged.',
      },
    ),
    autoload: Type.Boolean({
      default: true,
      description:
        'Load the tokenizer in the labels of a worker (tokenizer_path, else model_path) under the ids of its models, if the label is an absolute path on this machine. Labels of the configuration file may name any path, all others only paths inside roots.',
    }),
    saved: Type.Union([Type.Literal('load'), Type.Literal('forget')], {
      default: 'load',
      description:
        'load: reload tokenizers added through the API at start, from the paths that the storage plugin keeps; forget: delete these paths at start. A mesh that shares tokenizers keeps the paths instead, and forget has no effect.',
    }),
    roots: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        'Absolute paths of folders from which POST /v1/tokenizers and labels of workers may load tokenizers and templates; symbolic links are resolved first. Empty: only weir:sample. Paths in the configuration file are not restricted.',
    }),
    maxTokenizers: count(64, 1, 1_024, 'Maximum number of tokenizers, including those being loaded.'),
    maxFileBytes: count(134_217_728, 1, 1_073_741_824, 'Maximum size of a vocabulary file, bytes.'),
    loadMs: count(
      60_000,
      1,
      3_600_000,
      'Timeout for loading one tokenizer, milliseconds; the loading thread, which does not encode, is replaced when it expires.',
    ),
    encodeMs: count(
      60_000,
      1,
      3_600_000,
      'Timeout for encoding one batch of texts, milliseconds; the thread is replaced when it expires.',
    ),
    poolThreads: count(
      1,
      1,
      64,
      'Threads of the process that render and encode. They share byte-level vocabularies. As many more, started on first use, encode with all other vocabularies; each keeps its own copies.',
    ),
    queueLimit: count(
      4_096,
      1,
      1_000_000,
      'Maximum number of queued texts of either kind of threads; more are rejected with 503.',
    ),
    heapMiB: count(
      1_024,
      64,
      16_384,
      'Maximum JavaScript heap of such a thread and of the one that loads, MiB. Vocabularies are not part of the heap.',
    ),
    rendering: Type.Object(
      {
        maxSteps: count(
          DEFAULT_LIMITS.maxSteps,
          1,
          1_000_000_000,
          'Maximum number of statements and expressions that a chat template evaluates for one chat, for which chats of other models wait: a million lasts for about 0.1 s. 64 characters read or written by its functions count as one. A chat that needs more is rejected with 400.',
        ),
        maxCharacters: count(
          DEFAULT_LIMITS.maxCharacters,
          1,
          134_217_728,
          'Maximum length of the prompt, and of any other text that a chat template computes, characters.',
        ),
        maxMs: count(
          DEFAULT_LIMITS.maxMs,
          1,
          600_000,
          'Timeout for rendering one chat, and for checking the templates of a tokenizer when it is loaded, milliseconds. It is far above the time that maxSteps takes, because an overloaded machine is slower.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    promptCache: Type.Object(
      {
        enabled: Type.Boolean({ default: false, description: 'Cache the token ids of whole prompts.' }),
        maxEntries: count(10_000, 1, 10_000_000, 'Maximum number of prompts.'),
        maxBytes: count(33_554_432, 1, 68_719_476_736, 'Maximum memory per tokenizer and thread, bytes.'),
      },
      { default: {}, additionalProperties: false },
    ),
    segmentCache: Type.Object(
      {
        enabled: Type.Boolean({
          default: false,
          description:
            'Cache the token ids of the text between special tokens, so that only new messages of a chat are encoded. Used only with tokenizers that pass a check when they are loaded.',
        }),
        maxBytes: count(52_428_800, 1, 68_719_476_736, 'Maximum memory per tokenizer and thread, bytes.'),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

export type TokenizersConfig = Static<typeof tokenizersConfig>
