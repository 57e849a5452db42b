/** The openapi plugin: describes every enabled route in one OpenAPI document. */
import { apiErrorFormat, definePlugin, Type } from '#kernel'
import { openapiConfig } from './config.ts'
import { buildDocument } from './document.ts'

const version = '0.1.0'

export default definePlugin({
  manifest: {
    name: 'openapi',
    version,
    description: 'GET /openapi.json, generated from the declared routes.',
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
        // Built when first asked for: routes are complete by then, and most gateways are never asked.
        json ??= JSON.stringify(
          buildDocument(host.routes(), { ...config, version, usesAuth: host.kernelConfig.auth !== 'off' }),
        )
        ctx.send(200, 'application/json', json)
      },
      docs: {
        summary: 'This document',
        tag: 'Documentation',
        responses: { 200: { description: 'An OpenAPI 3.1 document.', schema: Type.Object({}) } },
      },
    })
  },
})
