/** HTTP workers: the HTTP/1.1 client, and control: probes, discovery, loads, cache and profiler calls. */
import { definePlugin, OutgoingHttp, Type, WorkerTableReplica } from '#kernel'
import { CONTROL_POOL } from './control-call.ts'
import { httpControl } from './http-control.ts'
import { HttpTransport, outgoingHttp } from './http-transport.ts'

export default definePlugin({
  manifest: {
    name: 'http-workers',
    version: '0.1.0',
    description: 'Connects to workers with http:// and https:// URLs.',
    provides: [OutgoingHttp],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    host.provide(OutgoingHttp, outgoingHttp)
    const calls = new HttpTransport(CONTROL_POOL)
    host.transport(new HttpTransport(host.kernelConfig.upstream))
    host.workerControl(httpControl(calls))
    host.replica(WorkerTableReplica).onChange(() => calls.forgetUnconnected())
  },
})
