/** The health section of the configuration file. */
import { type Static, Type } from '#kernel'

export const healthConfig = Type.Object(
  {
    scrapeMs: Type.Integer({
      minimum: 1,
      maximum: 3_600_000,
      default: 5_000,
      description: 'Timeout of scraping the metrics of one worker, milliseconds.',
    }),
    generateReuseMs: Type.Integer({
      minimum: 0,
      maximum: 60_000,
      default: 1_000,
      description:
        'Time for which a thread sends the same response to further requests for /health_generate, milliseconds. Concurrent requests always share one.',
    }),
    maxConcurrentScrapes: Type.Integer({
      minimum: 1,
      default: 32,
      description: 'Maximum number of workers scraped at the same time.',
    }),
    probe: Type.Optional(
      Type.Object(
        {
          host: Type.String({ default: '127.0.0.1', description: 'Address of the probe port.' }),
          port: Type.Integer({ minimum: 0, maximum: 65_535, description: '0 selects any free port.' }),
        },
        {
          additionalProperties: false,
          description:
            'A separate plain HTTP port for /health, /liveness and /readiness, for probes without TLS or client certificate.',
        },
      ),
    ),
  },
  { additionalProperties: false },
)

export type HealthConfig = Static<typeof healthConfig>
