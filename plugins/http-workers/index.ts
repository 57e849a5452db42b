/** The control plane of HTTP workers: probing, discovery, loads, cache and profiler calls. */
import { definePlugin, Type } from '#kernel'
import { httpControl } from './http-control.ts'
import { callOf } from './probe.ts'

export default definePlugin({
  manifest: {
    name: 'http-workers',
    version: '0.1.0',
    description: 'Looks after workers with http:// and https:// URLs.',
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    host.workerControl(httpControl(callOf(host)))
  },
})
