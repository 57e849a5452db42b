/** The parsers section of the configuration file: formats and limits. */
import { type Static, Type } from '#kernel'

const parserName = (what: string) =>
  Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
    default: null,
    description: `Format of ${what} for all models, such as \`qwen\`; null selects the format by model.`,
  })

export const parsersConfig = Type.Object(
  {
    toolParser: parserName('tool calls'),
    reasoningParser: parserName('reasoning'),
    maxCalls: Type.Integer({
      minimum: 1,
      maximum: 10_000,
      default: 128,
      description: 'Maximum number of tool calls in one response; later calls are returned as text.',
    }),
    maxArgumentKb: Type.Integer({
      minimum: 1,
      maximum: 65_536,
      default: 8_192,
      description: 'Maximum length of the arguments of one tool call, in units of 1,024 characters.',
    }),
    maxReasoningKb: Type.Integer({
      minimum: 1,
      default: 4_096,
      description: 'Maximum length of the text of POST /parse/reasoning, in KiB.',
    }),
  },
  { additionalProperties: false },
)

export type ParsersConfig = Static<typeof parsersConfig>
