/** Payloads of the health routes. */
import { Type } from '#kernel'

export const ReadyReply = Type.Object({
  status: Type.Literal('ready'),
  healthy_workers: Type.Integer({ description: 'Workers in state ready.' }),
  total_workers: Type.Integer({ description: 'All registered workers.' }),
  open_breakers: Type.Optional(
    Type.Integer({
      description:
        'Ready workers whose circuit breaker holds requests back; GET /workers names them. Absent where there is none.',
    }),
  ),
})

export const NotReadyReply = Type.Object({
  status: Type.Literal('not ready'),
  reason: Type.String({ description: 'Such as `insufficient healthy workers` or `draining`.' }),
})
