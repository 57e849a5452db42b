/** The responses plugin: the stateful responses API over any worker. */
import {
  definePlugin,
  type GatewayError,
  Generations,
  History,
  Mesh,
  type RequestFacts,
  SharedStore,
  Store,
  Tokenizers,
  ToolLoop,
} from '#kernel'
import { responsesConfig } from './config.ts'
import { responsesErrorFormat, socketErrorFormat } from './error-format.ts'
import { BackgroundRunner } from './serve/background/background-runner.ts'
import { CancelTopic, JobsTopic, LiveTopic, MeshSignals, SignalTopic } from './serve/background/signals.ts'
import type { Parts, RunningStream } from './serve/parts.ts'
import { TextSeal } from './serve/prompt/sealed-text.ts'
import { createRoutes } from './serve/routes.ts'
import { SealKeysReplica, sealKeyLoader } from './serve/seal-keys.ts'
import { responsesSocket } from './serve/socket.ts'
import { storedRoutes } from './serve/stored/stored-routes.ts'

export default definePlugin({
  manifest: {
    name: 'responses',
    version: '0.1.0',
    description: 'The responses API: state on the server, tools on the server, streams that resume.',
    uses: [Generations],
    usesOptionally: [History, Mesh, SharedStore, Store, Tokenizers, ToolLoop],
    degradable: [SharedStore],
    config: responsesConfig,
  },
  enables: () => ['auth', 'history'],
  register(host, config) {
    const runs = host.slot<RunningStream>()
    const history = host.find(History)
    const parts: Parts = {
      host,
      config,
      runs,
      live: host.topic(LiveTopic),
      stops: host.topic(CancelTopic),
      jobs: host.topic(JobsTopic),
      signals: host.topic(SignalTopic),
      history,
      toolLoop: host.find(ToolLoop),
      tokenizers: host.find(Tokenizers),
      seal: new TextSeal(),
    }
    const lastFrames = (request: RequestFacts, error: GatewayError) => runs.get(request)?.lastFrames(error)
    const errors = responsesErrorFormat(lastFrames)
    const runner = history === undefined ? null : new BackgroundRunner({ ...parts, history })
    for (const route of createRoutes(parts, errors, (tenant) => runner?.queued(tenant))) host.route(route)
    host.socket(responsesSocket(parts, socketErrorFormat(lastFrames)))
    for (const route of storedRoutes(parts, errors)) host.route(route)
    const mesh = host.find(Mesh)
    if (mesh?.isShared && history?.isShared) new MeshSignals(mesh.channel('signals'), parts)
    const { encryptionKey } = config
    const sealKeys = host.replica(SealKeysReplica)
    const useKeys = (stored: readonly string[]) => {
      const configured = encryptionKey === null ? [] : [Buffer.from(encryptionKey)]
      parts.seal.useKeys([...configured, ...stored.map((key) => Buffer.from(key, 'base64'))])
    }
    sealKeys.onChange(useKeys)
    const keyLoader = sealKeyLoader(
      { shared: host.find(SharedStore), own: host.find(Store), log: host.log },
      encryptionKey !== null,
      () => host.outage(SharedStore) !== null,
      (keys) => host.publish(SealKeysReplica, keys),
    )
    return {
      start: async () => {
        if (host.isControl) await keyLoader.start()
        useKeys(sealKeys.current)
      },
      ready: () => {
        if (host.isData) runner?.start()
      },
      drain: () => runner?.stop(),
      stop: () => {
        keyLoader.stop()
        runner?.stop()
      },
    }
  },
})
