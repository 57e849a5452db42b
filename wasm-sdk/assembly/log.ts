/** Lines of the gateway's log, with the name of the module and the request id. Never log user content. */
import * as host from './extism'
import { toTextBlock } from './memory'

export namespace log {
  export function debug(text: string): void {
    const block = toTextBlock(text)
    host.log_debug(block)
    host.free(block)
  }

  export function info(text: string): void {
    const block = toTextBlock(text)
    host.log_info(block)
    host.free(block)
  }

  export function warn(text: string): void {
    const block = toTextBlock(text)
    host.log_warn(block)
    host.free(block)
  }

  export function error(text: string): void {
    const block = toTextBlock(text)
    host.log_error(block)
    host.free(block)
  }
}
