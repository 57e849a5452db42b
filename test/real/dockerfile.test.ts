/**
 * The steps of the Dockerfile without a daemon, in folders instead of images. Only `npm ci` is replaced: by a link to the
 * packages that are installed here.
 */
import { execFile, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { makeFolder, RunningCommand, readyGateway, stopCommands } from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`

afterEach(stopCommands)

interface Image {
  readonly folder: string
  readonly env: Record<string, string>
  readonly settings: Map<string, string>
}

/** Each line of the Dockerfile as instruction and arguments. */
function instructions(): [string, string][] {
  const lines = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').split('\n')
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)])
}

/** Copies a path of the build context, which .dockerignore must allow. */
function copyFromContext(path: string, target: string): void {
  const allowed = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')
  expect(allowed, `${path} must be in .dockerignore`).toContain(`!${path.split('/')[0]}`)
  expect(existsSync(join(ROOT, path)), `${path} must exist`).toBe(true)
  cpSync(join(ROOT, path), target, {
    recursive: true,
    filter: (file) => !/\.test\.ts$|^(node_modules|target|build)$/.test(basename(file)),
  })
}

async function build(): Promise<Image> {
  const root = makeFolder()
  const stages = new Map<string, string>()
  let image: Image = { folder: root, env: {}, settings: new Map() }
  for (const [word, rest] of instructions()) {
    const words = rest.split(' ')
    if (word === 'FROM') {
      const folder = join(root, words[2] ?? 'final')
      stages.set(words[2] ?? 'final', folder)
      mkdirSync(folder)
      image = { folder, env: {}, settings: new Map() }
    } else if (word === 'ENV') {
      for (const pair of words) image.env[pair.split('=')[0]] = pair.split('=')[1]
    } else if (word === 'COPY') {
      const stage = words[0].startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined
      const target = words.pop() as string
      for (const path of words) {
        const to = join(image.folder, target, target.endsWith('/') ? path : '')
        if (stage === undefined) copyFromContext(path, to)
        else {
          const from = join(stages.get(stage) as string, path.replace('/app/', ''))
          cpSync(from, to, { recursive: true, verbatimSymlinks: true })
        }
      }
    } else if (word === 'RUN' && rest.startsWith('npm ci'))
      symlinkSync(join(ROOT, 'node_modules'), join(image.folder, 'node_modules'))
    else if (word === 'RUN') {
      await run('sh', ['-c', rest], { cwd: image.folder, env: { ...image.env, PATH, HOME: root } })
    } else image.settings.set(word, rest)
  }
  return image
}

test('the image holds production packages, runs as an unprivileged user, and passes its health check', async () => {
  const lines = instructions().map(([word, rest]) => `${word} ${rest}`)
  const packages = lines.indexOf('FROM node:22-bookworm-slim AS packages')
  expect(lines.slice(packages + 1).find((line) => line.startsWith('RUN'))).toBe('RUN npm ci --omit=dev')
  expect(lines).toContain('COPY --from=packages /app/node_modules node_modules')

  const image = await build()
  expect(image.settings.get('USER')).toBe('node')

  const [port, metrics, probe] = await Promise.all([freePort(), freePort(), freePort()])
  expect(image.env).toMatchObject({
    ...{ WEIR_HOST: '0.0.0.0', WEIR_METRICS_HOST: '0.0.0.0', WEIR_PROBE_HOST: '0.0.0.0' },
    ...{ WEIR_PORT: '30000', WEIR_METRICS_PORT: '29000', WEIR_PROBE_PORT: '30001' },
  })
  expect(image.settings.get('EXPOSE')).toBe('30000 29000 30001')
  const ports = {
    WEIR_PORT: String(port),
    WEIR_METRICS_PORT: String(metrics),
    WEIR_PROBE_PORT: String(probe),
  }
  const env = { ...image.env, PATH, ...ports }
  const inImage = { cwd: image.folder, env }
  const [command, ...args] = ['ENTRYPOINT', 'CMD'].flatMap(
    (name) => JSON.parse(image.settings.get(name) as string) as string[],
  )
  const child = spawn(command, args, { ...inImage, stdio: ['ignore', 'pipe', 'pipe'] })
  const gateway = new RunningCommand(child)
  await readyGateway(gateway)
  // All of 127.0.0.0/8 is local: only a listener on every address accepts this one.
  expect((await fetch(`http://127.0.0.2:${probe}/liveness`)).status).toBe(200)
  expect(await (await fetch(`http://127.0.0.2:${metrics}/metrics`)).text()).toContain('weir_process_uptime')
  const health = image.settings.get('HEALTHCHECK') as string
  const [check, ...checkArgs] = JSON.parse(health.slice(health.indexOf('['))) as string[]
  await run(check, checkArgs, inImage)
  await gateway.stop()
  await expect(run(check, checkArgs, inImage)).rejects.toMatchObject({ code: 1 })
})
