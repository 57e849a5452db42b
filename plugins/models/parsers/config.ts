/** The parsers section of the configuration file: which formats are read where a model does not tell, and limits. */
import { type Static, Type } from '#kernel'

const parserName = (what: string) =>
  Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
    default: null,
    description: `Format of ${what} for every model, such as \`qwen\`; null chooses by the model.`,
  })

export const parsersConfig = Type.Object(
  {
    toolParser: parserName('tool calls'),
    reasoningParser: parserName('reasoning'),
    maxCalls: Type.Integer({
      minimum: 1,
      maximum: 10_000,
      default: 128,
      description: 'Tool calls of one answer; what comes beyond is text.',
    }),
    maxArgumentKb: Type.Integer({
      minimum: 1,
      maximum: 65_536,
      default: 8_192,
      description: 'Longest arguments of one call, in units of 1,024 characters.',
    }),
    maxReasoningKb: Type.Integer({
      minimum: 1,
      default: 4_096,
      description: 'Longest text that POST /parse/reasoning takes, in KiB.',
    }),
  },
  { additionalProperties: false },
)

export type ParsersConfig = Static<typeof parsersConfig>
