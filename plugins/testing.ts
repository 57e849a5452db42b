/**
 * Test kit for authors of plugins, in one entry (`weir-gateway/testing`): a gateway and simulated engines in the process of the
 * test, on free ports.
 */
export {
  type ReceivedRequest,
  startEngine,
  type TestAnswer,
  type TestEngine,
  type TestEngineOptions,
} from './testing/start-engine.ts'
export { startGateway, type TestGateway, type TestGatewayOptions } from './testing/start-gateway.ts'
