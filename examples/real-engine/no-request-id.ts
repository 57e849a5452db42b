/** Keeps the gateway's request ids from an engine that refuses every id that is not a UUID. */
import { definePlugin, Type } from 'weir'

export default definePlugin({
  manifest: {
    name: 'no-request-id',
    version: '0.1.0',
    description: 'Drops x-request-id on the way to workers.',
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    host.hook(
      'onUpstreamRequest',
      (_ctx, { headers }) => {
        // A flat list: name, value, name, value.
        for (let at = headers.length - 2; at >= 0; at -= 2) {
          if (headers[at] === 'x-request-id') headers.splice(at, 2)
        }
      },
      { scope: 'all' },
    )
  },
})
