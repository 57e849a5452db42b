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
  /** False while the pod is not ready: a registered worker is kept, but none is added. */
  readonly mayBeAdded: boolean
  /** In the format of POST /workers. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Labels that link a worker to its pod. */
const POD_NAME_LABEL = 'weir/pod-name'
export const POD_UID_LABEL = 'weir/pod-uid'
/** Annotations of pods by precedence; the second is that of other gateways. */
const PORT_ANNOTATIONS = ['weir/worker-ports', 'smg.ai/worker-ports']
const BOOTSTRAP_ANNOTATIONS = ['weir/bootstrap-port', 'sglang.ai/bootstrap-port']

type Role = 'regular' | 'prefill' | 'decode'

/** Empty for pods that match no selector, are terminating, or have no address yet. */
export function podWorkers(pod: Pod, config: KubernetesConfig): PodWorker[] {
  const { metadata = {}, status = {} } = pod
  const role = roleOf(metadata.labels ?? {}, config)
  const { uid, name } = metadata
  if (role === null || uid === undefined || name === undefined || status.podIP === undefined) return []
  if (metadata.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null) return []
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return []
  const ports = portsOf(annotation(metadata.annotations, PORT_ANNOTATIONS)) ?? [config.port]
  const bootstrapPorts = portsOf(annotation(metadata.annotations, BOOTSTRAP_ANNOTATIONS)) ?? []
  const model = modelOf(pod, config.modelIdFrom)
  const host = status.podIP.includes(':') ? `[${status.podIP}]` : status.podIP
  return ports.map((port, index) => ({
    url: `${config.scheme}://${host}:${port}`,
    podUid: uid,
    mayBeAdded: status.phase === 'Running' && isReady(pod),
    body: {
      url: `${config.scheme}://${host}:${port}`,
      worker_type: role,
      labels: { [POD_NAME_LABEL]: name, [POD_UID_LABEL]: uid },
      ...(model !== null && { models: [{ id: model }] }),
      ...(config.workerApiKey !== null && { api_key: config.workerApiKey }),
      ...bootstrapOf(role, bootstrapPorts, index),
    },
  }))
}

function bootstrapOf(role: Role, ports: readonly number[], index: number): Record<string, number> {
  // One port for all, or one for each.
  const port = ports.length === 1 ? ports[0] : ports[index]
  return role === 'prefill' && port !== undefined ? { bootstrap_port: port } : {}
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
