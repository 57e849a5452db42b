/** The messages section of the configuration file. */
import { type Static, Type } from '#kernel'

export const messagesConfig = Type.Object(
  {
    models: Type.Record(Type.String({ minLength: 1 }), Type.String({ minLength: 1 }), {
      default: {},
      description:
        'Models by the names that clients use: `claude-sonnet-4-5: qwen3-coder`. A name that ends in `*` stands for all that begin like it; an exact name wins, then the longest beginning.',
    }),
    pingMs: Type.Integer({
      minimum: 0,
      maximum: 600_000,
      default: 15_000,
      description:
        'Silence after which a stream that is made here gets a `ping` event, in milliseconds; 0 for none but the first.',
    }),
    pdf: Type.Union([Type.Literal('refuse'), Type.Literal('file')], {
      default: 'refuse',
      description:
        'PDF documents for workers that do not speak the format. refuse: 400 naming the block. file: passed on as a `file` part, for workers that read those.',
    }),
  },
  { additionalProperties: false },
)

export type MessagesConfig = Static<typeof messagesConfig>
