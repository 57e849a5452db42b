/** Configuration section of the openapi plugin. */
import { Type } from '#kernel'

export const openapiConfig = Type.Object(
  {
    title: Type.String({ default: 'Weir', minLength: 1, description: 'Title of the document.' }),
    serverUrls: Type.Array(Type.String(), {
      default: ['/'],
      description: 'Base URLs of the gateway for clients.',
    }),
  },
  { additionalProperties: false },
)
