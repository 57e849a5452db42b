/** The openapi section of the configuration file: what the document says of the gateway itself. */
import { Type } from '#kernel'

export const openapiConfig = Type.Object(
  {
    title: Type.String({ default: 'Weir', minLength: 1, description: 'Title of the document.' }),
    serverUrls: Type.Array(Type.String(), {
      default: ['/'],
      description: 'Base URLs under which clients reach the gateway.',
    }),
  },
  { additionalProperties: false },
)
