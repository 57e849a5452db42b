/** Settings of the messages plugin. */
import { type Static, Type } from '#kernel'

export const messagesConfig = Type.Object(
  {
    pingMs: Type.Integer({
      minimum: 0,
      maximum: 600_000,
      default: 10_000,
      description:
        'Silence after which a stream opens, and a translated one gets a `ping` event, in milliseconds. 0: a stream waits for its worker, and there are no pings but the first.',
    }),
    pdf: Type.Union([Type.Literal('refuse'), Type.Literal('file')], {
      default: 'refuse',
      description:
        'PDF documents for workers that do not speak the format. refuse: status 400 naming the block. file: sent as a `file` part, for workers that accept those.',
    }),
  },
  { additionalProperties: false },
)

export type MessagesConfig = Static<typeof messagesConfig>
