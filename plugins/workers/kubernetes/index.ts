/** The kubernetes plugin: registers pods with matching labels as workers and removes them with their pods. */
import { definePlugin, WorkerRegistry } from '#kernel'
import { kubernetesConfig, kubernetesProblems } from './config.ts'
import { Discovery, DiscoveryProblemReplica, PodDiscovery } from './discovery.ts'

export default definePlugin({
  manifest: {
    name: 'kubernetes',
    version: '0.1.0',
    description: 'Discovers workers among the pods of a Kubernetes cluster.',
    uses: [WorkerRegistry],
    provides: [PodDiscovery],
    config: kubernetesConfig,
  },
  check: kubernetesProblems,
  register(host, config) {
    const problem = host.replica(DiscoveryProblemReplica)
    host.provide(PodDiscovery, {
      get problem() {
        return problem.current
      },
    })
    host.reportOutages(PodDiscovery, () => problem.current)
    if (!host.isControl) return
    const discovery = new Discovery(host, config, host.use(WorkerRegistry))
    return { ready: () => discovery.start(), stop: () => discovery.stop() }
  },
})
