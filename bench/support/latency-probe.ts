/** Asks one route again and again while something else goes on, over one kept connection, and keeps the times. */
import { Agent, request } from 'node:http'
import { BENCH_KEY } from './subject.ts'

export interface LatencyProbe {
  /** Ends it. @returns milliseconds from request to end of reply, shortest first */
  stop(): Promise<number[]>
}

/** Requests go over one connection, and so to one of the threads that serve. */
export const oneConnection = () => new Agent({ keepAlive: true, maxSockets: 1 })

/**
 * @param pauseMs between an answer and the next question
 * @param waitedMs grows by what is not to count, such as waiting for a core of a busy machine
 * @param agent whose connection is used, and closed at the end
 */
export function startProbe(
  port: number,
  path: string,
  pauseMs: number,
  waitedMs: () => number = () => 0,
  agent = oneConnection(),
): LatencyProbe {
  const times: number[] = []
  let isOver = false
  const ask = async () => {
    while (!isOver) {
      const before = waitedMs()
      const tookMs = await timeOne(agent, port, path)
      times.push(Math.max(0, tookMs - (waitedMs() - before)))
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
  const asking = ask()
  return {
    async stop() {
      isOver = true
      await asking
      agent.destroy()
      return times.sort((left, right) => left - right)
    },
  }
}

/** @throws when the answer is not 200 */
export function timeOne(agent: Agent, port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedAtMs = performance.now()
    const headers = { authorization: `Bearer ${BENCH_KEY}` }
    request({ host: '127.0.0.1', port, path, agent, headers }, (reply) => {
      reply.resume()
      reply.on('error', reject)
      reply.on('end', () => {
        if (reply.statusCode === 200) resolve(performance.now() - startedAtMs)
        else reject(new Error(`${path} answered ${reply.statusCode}`))
      })
    })
      .on('error', reject)
      .end()
  })
}

/** @param sorted ascending, at least one */
export function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]
}
