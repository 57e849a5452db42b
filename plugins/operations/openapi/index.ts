/** The openapi plugin: describes every enabled route in one OpenAPI document. */
import { apiErrorFormat, definePlugin, Type } from '#kernel'
import { buildDocument } from './document.ts'

const version = '0.1.0'

const openapiConfig = Type.Object(
  {
    title: Type.String({ default: 'Weir', minLength: 1, description: 'Title of the document.' }),
    serverUrls: Type.Array(Type.String(), {
      default: ['/'],
      description: 'Base URLs of the gateway for clients.',
    }),
  },
  { additionalProperties: false },
)

export default definePlugin({
  manifest: {
    name: 'openapi',
    version,
    description: 'OpenAPI document of all routes at GET /openapi.json.',
    config: openapiConfig,
  },
  register(host, config) {
    let json: string | null = null
    host.route({
      method: 'GET',
      path: '/openapi.json',
      access: 'public',
      errors: apiErrorFormat,
      handler(ctx) {
        // Built on the first request, when all routes are declared.
        json ??= JSON.stringify(
          buildDocument(host.routes(), { ...config, version, usesAuth: host.kernelConfig.auth !== 'off' }),
        )
        ctx.send(200, 'application/json', json)
      },
      docs: {
        summary: 'Get this OpenAPI document',
        tag: 'Documentation',
        responses: { 200: { description: 'An OpenAPI 3.1 document.', schema: Type.Object({}) } },
      },
    })
  },
})
