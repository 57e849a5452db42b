/** A thread that requests /liveness continuously. Posts the 99th percentiles, milliseconds, on each message. */
import { performance } from 'node:perf_hooks'
import { parentPort, workerData } from 'node:worker_threads'
import { HttpLane } from './http-lane.ts'

const PAUSE_MS = 10
const waits: number[] = []
/** Timer delays of this thread, caused by the machine and not by the gateway. */
const delays: number[] = []
let isOver = false
parentPort?.once('message', () => {
  isOver = true
})

const lane = new HttpLane(workerData as number)
while (!isOver) {
  const sentAtMs = performance.now()
  await lane.send('GET /liveness HTTP/1.1\r\nhost: a\r\n')
  const repliedAtMs = performance.now()
  waits.push(repliedAtMs - sentAtMs)
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  delays.push(performance.now() - repliedAtMs - PAUSE_MS)
}
lane.close()
parentPort?.postMessage({ livenessP99Ms: p99(waits), machineP99Ms: p99(delays) })

/** 0 for too few values. */
function p99(values: number[]): number {
  if (values.length < 100) return 0
  values.sort((a, b) => a - b)
  return Math.round((values[Math.floor(values.length * 0.99)] ?? 0) * 10) / 10
}
