/** The health section of the configuration file: how workers are scraped for their metrics. */
import { type Static, Type } from '#kernel'

export const healthConfig = Type.Object(
  {
    scrapeMs: Type.Integer({
      minimum: 1,
      maximum: 3_600_000,
      default: 5_000,
      description: 'Time for one worker to answer a metrics scrape, in milliseconds.',
    }),
    maxConcurrentScrapes: Type.Integer({
      minimum: 1,
      default: 32,
      description: 'Workers scraped at the same time.',
    }),
    probe: Type.Optional(
      Type.Object(
        {
          host: Type.String({ default: '127.0.0.1', description: 'Address of the probe listener.' }),
          port: Type.Integer({ minimum: 0, maximum: 65_535, description: '0 takes any free port.' }),
        },
        {
          additionalProperties: false,
          description:
            'A plain HTTP port of its own for /health, /liveness and /readiness, for probes that speak no TLS or have no certificate.',
        },
      ),
    ),
  },
  { additionalProperties: false },
)

export type HealthConfig = Static<typeof healthConfig>
