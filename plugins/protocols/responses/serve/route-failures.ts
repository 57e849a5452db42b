/** What the API's description says of failures, alike for every route. */
import type { RouteDefinition } from '#kernel'

export const failures: RouteDefinition['docs']['responses'] = {
  400: { description: 'A field is missing or wrong, or names something that is not there.' },
  404: { description: 'No worker serves the model, or there is no such response or conversation.' },
  429: { description: 'Too many requests.' },
  500: { description: 'The worker, a tool or the store failed.' },
  503: { description: 'No worker that serves the model is ready.' },
}
