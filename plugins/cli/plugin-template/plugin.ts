/** Adds a greeting to responses, and serves it as a route. */
import { apiErrorFormat, definePlugin, Type } from 'weir-gateway'

export default definePlugin({
  manifest: {
    name: '{{name}}',
    version: '0.1.0',
    description: 'A greeting in responses.',
    config: Type.Object(
      { text: Type.String({ minLength: 1, default: 'hello', description: 'The greeting.' }) },
      { additionalProperties: false },
    ),
  },
  register(host, config) {
    host.hook(
      'onResponse',
      (_ctx, response) => {
        response.headers.push('x-greeting', config.text)
      },
      // All routes of the API; no body is buffered for this hook.
      { scope: 'all', maxResponseBytes: 0 },
    )
    host.route({
      method: 'GET',
      path: '/{{name}}',
      access: 'api',
      errors: apiErrorFormat,
      docs: {
        summary: 'The greeting',
        tag: '{{name}}',
        responses: { 200: { description: 'The greeting', schema: Type.Object({ text: Type.String() }) } },
      },
      handler: (ctx) => ctx.json(200, { text: config.text }),
    })
  },
})
