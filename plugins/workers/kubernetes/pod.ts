/** Derives workers from pods. */
import type { KubernetesConfig } from './config.ts'

/** The part of a pod that is read. @source Kubernetes API, Pod v1 */
export interface Pod {
  readonly metadata?: {
    readonly name?: string
    readonly namespace?: string
    readonly uid?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: unknown
  }
  readonly status?: {
    readonly phase?: string
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

/** A worker that should be registered. */
export interface PodWorker {
  readonly url: string
  readonly podUid: string
  /** Changes with what the worker is registered as. */
  readonly spec: string
  /** In the format of POST /workers. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Labels that link a worker to its pod. */
const POD_NAME_LABEL = 'weir/pod-name'
export const POD_UID_LABEL = 'weir/pod-uid'
/** What the pod specifies of its worker; a saved worker keeps it over a restart of the gateway. */
export const POD_SPEC_LABEL = 'weir/pod-spec'
/** Annotations of pods by precedence; the second is that of other gateways. */
const PORT_ANNOTATIONS = ['weir/worker-ports', 'smg.ai/worker-ports']
const BOOTSTRAP_ANNOTATIONS = ['weir/bootstrap-port', 'sglang.ai/bootstrap-port']

type Role = 'regular' | 'prefill' | 'decode'

/** Empty for pods that match no selector, are not running, not ready or terminating, or have no address yet. */
export function podWorkers(pod: Pod, config: KubernetesConfig): PodWorker[] {
  const { metadata = {}, status = {} } = pod
  const role = roleOf(metadata.labels ?? {}, config)
  const { uid, name } = metadata
  if (role === null || uid === undefined || name === undefined || status.podIP === undefined) return []
  if (metadata.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null) return []
  if (status.phase !== 'Running' || !(config.ignorePodReadiness || isReady(pod))) return []
  const ports = portsOf(annotation(metadata.annotations, PORT_ANNOTATIONS)) ?? [config.port]
  const bootstrapPorts = portsOf(annotation(metadata.annotations, BOOTSTRAP_ANNOTATIONS)) ?? []
  const model = modelOf(pod, config.modelIdFrom)
  const host = status.podIP.includes(':') ? `[${status.podIP}]` : status.podIP
  return ports.map((port, index) => {
    const url = `${config.scheme}://${host}:${port}`
    const bootstrapPort = bootstrapPortOf(role, bootstrapPorts, index)
    const spec = JSON.stringify([role, model, bootstrapPort])
    return {
      url,
      podUid: uid,
      spec,
      body: {
        url,
        worker_type: role,
        labels: { [POD_NAME_LABEL]: name, [POD_UID_LABEL]: uid, [POD_SPEC_LABEL]: spec },
        ...(model !== null && { models: [{ id: model }] }),
        ...(config.workerApiKey !== null && { api_key: config.workerApiKey }),
        ...(bootstrapPort !== null && { bootstrap_port: bootstrapPort }),
      },
    }
  })
}

/** One port for all workers of the pod, or one for each; null without one, and for other roles. */
function bootstrapPortOf(role: Role, ports: readonly number[], index: number): number | null {
  if (role !== 'prefill') return null
  return (ports.length === 1 ? ports[0] : ports[index]) ?? null
}

function roleOf(labels: Readonly<Record<string, string>>, config: KubernetesConfig): Role | null {
  const isChosen = (selector: Readonly<Record<string, string>>) => {
    const pairs = Object.entries(selector)
    return pairs.length > 0 && pairs.every(([key, value]) => labels[key] === value)
  }
  if (isChosen(config.prefillSelector)) return 'prefill'
  if (isChosen(config.decodeSelector)) return 'decode'
  return isChosen(config.selector) ? 'regular' : null
}

function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
}

function annotation(
  annotations: Readonly<Record<string, string>> | undefined,
  names: readonly string[],
): string | undefined {
  return names.map((name) => annotations?.[name]).find((value) => value !== undefined)
}

/** Distinct ports of a comma-separated list; undefined, which selects the default, if any is invalid. */
function portsOf(text: string | undefined): number[] | undefined {
  if (text === undefined) return undefined
  const ports = text.split(',').map((part) => Number(part.trim()))
  const isPort = (port: number) => Number.isInteger(port) && port >= 1 && port <= 65_535
  return ports.every(isPort) ? [...new Set(ports)] : undefined
}

function modelOf({ metadata }: Pod, from: string | null): string | null {
  if (from === null) return null
  if (from === 'namespace') return metadata?.namespace ?? null
  const key = from.slice(from.indexOf(':') + 1)
  return (from.startsWith('label:') ? metadata?.labels?.[key] : metadata?.annotations?.[key]) ?? null
}

/** Labels common to all selectors, by which the API server can filter. */
export function commonSelector(config: KubernetesConfig): string {
  const used = [config.selector, config.prefillSelector, config.decodeSelector].filter(
    (selector) => Object.keys(selector).length > 0,
  )
  return Object.entries(used[0] ?? {})
    .filter(([key, value]) => used.every((selector) => selector[key] === value))
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}
