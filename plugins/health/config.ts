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
  },
  { additionalProperties: false },
)

export type HealthConfig = Static<typeof healthConfig>
