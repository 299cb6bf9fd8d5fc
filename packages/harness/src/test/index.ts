/** For people who write harness adapters: the contract cases and a scripted model server. */
export { type ContractCase, type HarnessContractOptions, harnessContract } from "./contract.js";
export {
  type ScriptedRequest,
  type ScriptedServer,
  type ScriptedTurn,
  startScriptedServer,
} from "./scripted-server.js";
