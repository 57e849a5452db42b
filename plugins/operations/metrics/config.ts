/** Configuration section of the metrics plugin. */
import { integer, type Static, Type } from '#kernel'

export const metricsConfig = Type.Object(
  {
    host: Type.String({ default: '127.0.0.1', description: 'Address of the Prometheus listener.' }),
    port: integer(
      { default: 29000, min: 0, max: 65535 },
      'Port of the Prometheus listener; 0 selects a free port.',
    ),
  },
  { additionalProperties: false },
)

export type MetricsConfig = Static<typeof metricsConfig>
