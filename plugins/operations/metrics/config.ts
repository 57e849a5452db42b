/** Configuration section of the metrics plugin. */
import { type Static, Type } from '#kernel'

export const metricsConfig = Type.Object(
  {
    host: Type.String({ default: '127.0.0.1', description: 'Address of the Prometheus listener.' }),
    port: Type.Integer({
      minimum: 0,
      maximum: 65535,
      default: 29000,
      description: 'Port of the Prometheus listener; 0 selects a free port.',
    }),
  },
  { additionalProperties: false },
)

export type MetricsConfig = Static<typeof metricsConfig>
