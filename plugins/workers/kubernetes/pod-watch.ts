/** Lists pods and watches them from there on, with the addresses, certificates and tokens of the official client. */

import { readFileSync } from 'node:fs'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { type RequestOptions, request as requestHttps } from 'node:https'
import { dirname, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { KubeConfig } from '@kubernetes/client-node'
import { parse } from 'yaml'
import { isObject, type Logger, messageOf } from '#kernel'
import type { Pod } from './pod.ts'

const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 10_000
const CONNECT_MS = 30_000
/** Bookmarks arrive about once a minute, so that a longer silence means a lost server. */
const SILENCE_MS = 300_000
const PAGE_PODS = 250
/** A pod has at most 1.5 MiB, the limit of etcd. */
const MAX_EVENT_CHARS = 4_194_304
const MAX_PAGE_CHARS = 134_217_728
/** Of a watch whose version the server has compacted. */
const GONE = 410
const UNAUTHORIZED = 401

export interface PodWatchOptions {
  /** Null uses the service account of the pod of this process. */
  readonly kubeconfig: string | null
  readonly namespace: string | null
  readonly labelSelector: string
  readonly log: Logger
  readonly onChange: () => void
  /** Why pods cannot be listed or watched, and what to do; null while they can. */
  readonly onProblem: (problem: string | null) => void
}

/** @source Kubernetes API concepts, "Efficient detection of changes" */
interface WatchEvent {
  readonly type: string
  readonly object: Pod & { readonly metadata?: { readonly resourceVersion?: string }; readonly code?: number }
}

interface PodList {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string }
  readonly items: readonly Pod[]
}

class ApiFailure extends Error {
  readonly status: number

  constructor(status: number) {
    super(`status ${status}`)
    this.status = status
  }
}

/**
 * The client's own watch ends after 30 seconds of silence and asks for no bookmarks, so that a quiet cluster is listed again
 * after each compaction; this one stays open as long as the server keeps it.
 */
export class PodWatch {
  readonly #options: PodWatchOptions
  /** Null once its token or certificate was rejected. */
  #config: KubeConfig | null
  readonly #end = new AbortController()
  #pods = new Map<string, Pod>()
  /** From which the next watch continues; null requires a list. */
  #version: string | null = null
  #retryMs = FIRST_RETRY_MS
  #running: Promise<void> | null = null
  /** Whether the list has been read once; before that, missing pods are unknown, not gone. */
  isSynced = false
  #problem: string | null = null

  /** @throws Error if the kubeconfig cannot be read */
  constructor(options: PodWatchOptions) {
    this.#options = options
    this.#config = loadKubeConfig(options.kubeconfig)
  }

  /** Connects in the background and retries. */
  start(): void {
    this.#running = this.#run()
  }

  pods(): Pod[] {
    return [...this.#pods.values()]
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#end
    while (!signal.aborted) {
      const startedAtMs = performance.now()
      try {
        this.#version ??= await this.#list()
        await this.#watch(this.#version)
      } catch (error) {
        if (signal.aborted) return
        const status = error instanceof ApiFailure ? error.status : null
        // The client keeps a token for a minute after it was replaced.
        if (status === UNAUTHORIZED) this.#config = null
        if (status === GONE) {
          this.#version = null
          this.#retryMs = FIRST_RETRY_MS
        } else this.#failed(error)
      }
      if (performance.now() - startedAtMs > LAST_RETRY_MS) this.#retryMs = FIRST_RETRY_MS
      await sleep(this.#retryMs, undefined, { signal }).catch(() => {})
      this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2)
    }
  }

  /** Replaces the pods. @returns the version of the list */
  async #list(): Promise<string> {
    const pods = new Map<string, Pod>()
    let page: PodList['metadata'] | null = null
    do {
      const next: Record<string, string> = page?.continue === undefined ? {} : { continue: page.continue }
      const response = await this.#get({ limit: String(PAGE_PODS), ...next })
      let text = ''
      for await (const chunk of response) {
        text += chunk
        if (text.length > MAX_PAGE_CHARS) throw new Error(`a list has more than ${MAX_PAGE_CHARS} characters`)
      }
      const list = JSON.parse(text) as PodList
      for (const pod of list.items) pods.set(keyOf(pod), pod)
      page = list.metadata
    } while (page.continue)
    this.#pods = pods
    this.isSynced = true
    this.#options.onChange()
    return page.resourceVersion
  }

  /** Resolves when the server ends the watch. */
  async #watch(resourceVersion: string): Promise<void> {
    const response = await this.#get({ watch: 'true', allowWatchBookmarks: 'true', resourceVersion })
    response.socket.setKeepAlive(true, CONNECT_MS)
    let isSilent = false
    response.setTimeout(SILENCE_MS, () => {
      isSilent = true
      response.destroy()
    })
    this.#recovered()
    try {
      await this.#applyAll(response)
    } catch (error) {
      // A server that is gone fails the next request.
      if (!isSilent) throw error
    }
  }

  async #applyAll(response: IncomingMessage): Promise<void> {
    let rest = ''
    for await (const chunk of response) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() as string
      if (rest.length > MAX_EVENT_CHARS)
        throw new Error(`an event has more than ${MAX_EVENT_CHARS} characters`)
      for (const line of lines) this.#apply(JSON.parse(line) as WatchEvent)
    }
  }

  #apply({ type, object }: WatchEvent): void {
    if (type === 'ERROR') throw new ApiFailure(object.code ?? 500)
    this.#retryMs = FIRST_RETRY_MS
    this.#version = object.metadata?.resourceVersion ?? this.#version
    if (type === 'BOOKMARK') return
    if (type === 'DELETED') this.#pods.delete(keyOf(object))
    else this.#pods.set(keyOf(object), object)
    this.#options.onChange()
  }

  /** @returns the response with status 200, whose chunks are strings */
  async #get(query: Record<string, string>): Promise<IncomingMessage> {
    const { namespace, labelSelector } = this.#options
    this.#config ??= loadKubeConfig(this.#options.kubeconfig)
    const path = namespace === null ? '/api/v1/pods' : `/api/v1/namespaces/${namespace}/pods`
    const url = new URL(`${this.#config.getCurrentCluster()?.server}${path}`)
    url.search = String(new URLSearchParams({ ...(labelSelector !== '' && { labelSelector }), ...query }))
    // Read for each request, since tokens of service accounts are rotated.
    const options: RequestOptions = {}
    await this.#config.applyToHTTPSOptions(options)
    const send = url.protocol === 'http:' ? requestHttp : requestHttps
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = send(url, { ...options, signal: this.#end.signal }, resolve)
      request.setTimeout(CONNECT_MS, () => request.destroy(new Error('no response')))
      request.on('error', reject)
      request.end()
    })
    if (response.statusCode !== 200) {
      response.destroy()
      throw new ApiFailure(response.statusCode ?? 0)
    }
    return response.setEncoding('utf8')
  }

  #recovered(): void {
    if (this.#problem === null) return
    this.#setProblem(null)
    this.#options.log.info({}, 'pod watch recovered')
  }

  #setProblem(problem: string | null): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#options.onProblem(problem)
  }

  #failed(error: unknown): void {
    const problem = problemOf(error, this.#options.namespace)
    if (problem !== this.#problem) this.#options.log.warn({ reason: problem }, 'pod watch failed')
    this.#setProblem(problem)
  }
}

const keyOf = ({ metadata }: Pod) => `${metadata?.namespace}/${metadata?.name}`

const MAX_REASON = 200

/** Cause and remedy in one line. */
function problemOf(error: unknown, namespace: string | null): string {
  const status = error instanceof ApiFailure ? error.status : null
  const scope = namespace === null ? 'in all namespaces, by a ClusterRole' : `in the namespace ${namespace}`
  if (status === 403)
    return `the API server answered 403: allow the service account to list and watch pods ${scope}`
  if (status === UNAUTHORIZED) return 'the API server answered 401: the token or certificate is not valid'
  if (status !== null) return `the API server answered ${status}`
  // The message is empty if every address of a name failed.
  const reason = messageOf(error instanceof AggregateError ? error.errors[0] : error)
  return `the API server cannot be reached: ${reason.slice(0, MAX_REASON)}`
}

function loadKubeConfig(path: string | null): KubeConfig {
  const config = new KubeConfig()
  if (path === null) config.loadFromCluster()
  else {
    config.loadFromFile(path)
    config.users = withTokenFiles(config.users, path)
  }
  if (config.getCurrentCluster()?.server.includes('undefined') !== false) {
    throw new Error(
      path === null
        ? 'plugins.kubernetes.kubeconfig must be the path of a kubeconfig file, since this process does not run in a cluster'
        : `plugins.kubernetes.kubeconfig: ${path} has no current cluster`,
    )
  }
  return config
}

/** The client drops the file that contains the token of a user, and would send requests without one. */
function withTokenFiles(users: KubeConfig['users'], path: string): KubeConfig['users'] {
  const { users: written } = parse(readFileSync(path, 'utf8')) as { readonly users?: unknown }
  const entries: readonly unknown[] = Array.isArray(written) ? written : []
  const fileOf = (name: string): unknown => {
    const entry = entries.find((one) => isObject(one) && one.name === name)
    return isObject(entry) && isObject(entry.user) ? entry.user.tokenFile : undefined
  }
  return users.map((user) => {
    const file = fileOf(user.name)
    if (typeof file !== 'string') return user
    return {
      ...user,
      authProvider: { name: 'tokenFile', config: { tokenFile: resolve(dirname(path), file) } },
    }
  })
}
