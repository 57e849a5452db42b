/** A tool server as a process, of the revision in its argument. Prints its port, then a line for each call of `hang`. */
import { startStatelessServer } from './stateless-server.ts'
import { startToolServer } from './tool-server.ts'

const tools = {
  look: ({ city }: Record<string, unknown>) => `rain in ${city}`,
  hang: () => {
    console.log('hanging')
    return new Promise(() => {})
  },
}
const { url } = await (process.argv[2] === '2026-07-28'
  ? startStatelessServer(tools)
  : startToolServer(tools))
console.log(new URL(url).port)
