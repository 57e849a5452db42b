/** A custom plugin: counts the requests of every plugin and returns the count on a route and in a header. */
import { apiErrorFormat, definePlugin, Type } from 'weir-gateway'

export default definePlugin({
  manifest: {
    name: 'visit-counter',
    version: '0.1.0',
    description: 'Counts requests.',
    config: Type.Object(
      { greeting: Type.String({ default: 'Hello', description: 'First word of the answer.' }) },
      { additionalProperties: false },
    ),
  },
  register(host, config) {
    // Each data thread counts for itself; a number for all of them would be a metric or a command.
    let visits = 0

    host.hook(
      'onRequest',
      () => {
        visits++
      },
      { scope: 'all' },
    )

    host.route({
      method: 'GET',
      path: '/visits/:name',
      access: 'public',
      errors: apiErrorFormat,
      docs: {
        summary: 'Say how many requests there were',
        tag: 'visits',
        responses: { 200: { description: 'The count', schema: Type.Object({ message: Type.String() }) } },
      },
      handler: (ctx) => {
        const message = `${config.greeting}, ${ctx.param('name')}: ${visits} requests so far`
        ctx.json(200, { message }, ['x-visits', String(visits)])
      },
    })
  },
})
